"""What one task lets its implementer see and write: the sections it points to, and the files it names."""

from collections.abc import Mapping
from typing import Final

from fairwitness.contracts.agents.dispatch import PromptSection
from fairwitness.contracts.feature.task import TaskDocument
from fairwitness.kit import yaml_text
from fairwitness.rules.plan import is_test_file
from fairwitness.rules.pointers import Dead, resolve_pointer
from fairwitness.rules.risk import is_configuration, is_documentation
from fairwitness.rules.tools import path_problem

_WHOLE: Final = "payload"
"""A pointer to this names a document and no section of it."""
_WILD: Final = "*?"
_TEST_NAMES: Final = ("test_{stem}*.{ending}", "{stem}_test.{ending}", "{stem}.test.{ending}", "{stem}.spec.{ending}")


def implementer_boxes(document: TaskDocument, documents: Mapping[str, object]) -> tuple[PromptSection, PromptSection]:
    """The task, and in place of its pointers the sections that they name; nothing else of the documents.

    A pointer is an agent's text and stands inside the box, never above it. Where one leads nowhere, a note says so.
    """
    context = document.task.relevant_context
    pointers = dict.fromkeys((*context.design_sections, *context.spec_requirements))
    plain = document.plain()
    for resolved in ("design_sections", "spec_requirements"):
        del plain["task"]["relevant_context"][resolved]
    found = [f"{pointer}\n\n{_section(pointer, documents)}" for pointer in pointers]
    return (
        PromptSection(title="The task", text=yaml_text.render(plain)),
        PromptSection(title="The sections it points to", text="\n".join(found)),
    )


def _section(pointer: str, documents: Mapping[str, object]) -> str:
    if pointer.partition("#")[2] == _WHOLE:
        return "(Not shown: this names a whole document and no section of it. Go on without it.)\n"
    found = resolve_pointer(pointer, documents)
    if isinstance(found, Dead):
        return f"(Not shown: the pointer leads nowhere, since {found.reason}. Go on without it.)\n"
    return yaml_text.render(found.value)


def writes_of(document: TaskDocument) -> tuple[str, ...]:
    """What the task's implementer may write: the files it names, and tests named after them if it names no test.

    A name with a wildcard is no file: its colour would say nothing about what it lets through.
    """
    named = tuple(file.path for file in document.task.relevant_context.files_to_modify or ())
    files = tuple(dict.fromkeys(path for path in named if _is_file(path)))
    if any(is_test_file(path) for path in files):
        return files
    tests = (f"**/{name}" for path in files for name in _test_names(path))
    return tuple(dict.fromkeys((*files, *tests)))


def _is_file(path: str) -> bool:
    return not any(sign in path for sign in _WILD) and path_problem(path) is None


def _test_names(path: str) -> tuple[str, ...]:
    if is_documentation(path) or is_configuration(path):
        return ()
    stem, _, ending = path.rpartition("/")[2].rpartition(".")
    return tuple(name.format(stem=stem, ending=ending) for name in _TEST_NAMES) if stem else ()
