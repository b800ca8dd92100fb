"""The project of an autopilot run: roadmap, settings, commands and specifications in a checkout."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from fairwitness.app.settings.verify import verify_settings
from fairwitness.contracts.autopilot.roadmap import DEFAULT_SPEC_PATHS, CommandKind, ProjectConfig, Roadmap, UiFiles
from fairwitness.contracts.autopilot.state import SpecLock
from fairwitness.contracts.common.problems import ProblemLevel, spell_path
from fairwitness.contracts.verify.checks import Discovered
from fairwitness.errors import BadDocument, FairWitnessError, NotStored, StoreError, UsageError
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit import json_text
from fairwitness.kit.clock import Clock, spell
from fairwitness.kit.text import visible
from fairwitness.rules.markdown_lines import heading_of, said_lines
from fairwitness.rules.problem_words import problems_of
from fairwitness.rules.project_commands import MANIFESTS, commands_of, detect_commands, with_checks
from fairwitness.rules.requirement_texts import requirement_texts
from fairwitness.rules.roadmap import CRITERIA, GOAL, read_roadmap
from fairwitness.rules.roadmap_fields import is_stub, phase_id_of, plain
from fairwitness.rules.spec_lock import spec_locks, spec_paths
from fairwitness.runs.autopilot.own_files import foreign_paths, is_our_gitignore
from fairwitness.store.artifacts import Store, content_hash
from fairwitness.store.layout import autopilot as layout
from fairwitness.verify.tree_view import checks_at

GITIGNORE = ".gitignore"
_LARGEST = 1_000_000
_NAMED = 3
_TO_BE_SAID = "TBD"


@dataclass(frozen=True, slots=True)
class AutopilotProject:
    """The roadmap, commands and specifications of a checkout."""

    text: str
    """The text of the roadmap."""
    roadmap: Roadmap
    commands: Mapping[CommandKind, str | None]
    ui: UiFiles | None
    specs: tuple[SpecLock, ...]
    spec_paths: tuple[str, ...]
    requirements: Mapping[str, str]
    """The texts of requirements that only a specification describes."""
    warnings: tuple[str, ...]


def read_project(repository: Repository, clock: Clock, *, discovers: bool = False) -> AutopilotProject:
    """Read the project from the checkout; raise `UsageError` with file and line for invalid content.

    With `discovers`, commands that neither the settings nor a manifest name are those of the required checks.
    """
    files = checkout_of(repository)
    text = _text(files, layout.ROADMAP)
    if text is None:
        raise UsageError(f"there is no {layout.ROADMAP}", next_step="fairwitness autopilot init writes a template")
    reading = read_roadmap(text)
    if reading.roadmap is None:
        wrong = [problem for problem in reading.problems if problem.level is ProblemLevel.ERROR]
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        place = spell_path(wrong[0].where).removeprefix("line ")
        raise UsageError(
            f"{layout.ROADMAP}:{place}: expected {wrong[0].expected}, found {wrong[0].found}{more}",
            next_step=f"fix {layout.ROADMAP}",
        )
    config = read_config(files)
    detected = detect_commands(manifests(files))
    said = None if config is None else config.project
    if discovers and None in commands_of(said, detected).values():  # looking takes the whole checkout
        detected = with_checks(detected, discovered_checks(repository))
    specs = current_locks(files, config, spell(clock()))
    named = () if config is None else config.project.spec_paths or ()
    expected = {*DEFAULT_SPEC_PATHS, *(lock.path for lock in specs)}  # the default paths need not exist
    warnings = [f"{path}, named in {layout.CONFIG}, is not there" for path in named if path not in expected]
    wanted = [each.id for phase in reading.roadmap.phases for each in phase.requirements if each.text is None]
    texts = requirement_texts([_text(files, lock.path) or "" for lock in specs], wanted)
    warnings += [f"{name} is described in no specification" for name in dict.fromkeys(wanted) if name not in texts]
    warnings += [f"{spell_path(each.where)} cannot be read: {each.found}" for each in detected.problems]
    return AutopilotProject(
        text=text,
        roadmap=reading.roadmap,
        commands=commands_of(said, detected),
        ui=None if config is None else config.project.ui,
        specs=specs,
        spec_paths=spec_paths(config),
        requirements=texts,
        warnings=tuple(map(visible, warnings)),
    )


def discovered_checks(repository: Repository) -> Discovered:
    """Return the checks that `fairwitness verify` would find in the checkout."""
    with tempfile.TemporaryDirectory(prefix="fairwitness-project-") as folder:
        shadow = Shadow.open(Path(folder) / "git", repository)
        settings, _ = verify_settings(repository.top)
        return checks_at(shadow, shadow.worktree_tree(repository), settings)


def current_locks(files: Store, config: ProjectConfig | None, now: str) -> tuple[SpecLock, ...]:
    """Return the existing specifications with their current hashes."""
    paths = spec_paths(config)
    hashes = {path: found for path in paths if (found := _hash(files, path)) is not None}
    return spec_locks(paths, hashes, now)


def _hash(files: Store, path: str) -> str | None:
    try:
        return content_hash(files.get(path, limit=_LARGEST))
    except NotStored:
        return None
    except StoreError as error:
        raise UsageError(error.what, next_step=error.next_step) from None


def read_config(files: Store) -> ProjectConfig | None:
    """Return the project's settings, or None if there are none."""
    text = _text(files, layout.CONFIG)
    if text is None:
        return None
    try:
        value = json_text.parse(text)
    except BadDocument as error:
        raise UsageError(f"{layout.CONFIG}: {error.what}", next_step=f"fix {layout.CONFIG}") from None
    try:
        return ProjectConfig.model_validate(value)
    except ValidationError as error:
        first = problems_of(value, error.errors(include_url=False))[0]
        raise UsageError(
            f"{layout.CONFIG}: {spell_path(first.where)}: expected {first.expected}, found {first.found}",
            next_step=f"fix {layout.CONFIG}",
        ) from None


def manifests(files: Store) -> dict[str, str]:
    """Return the existing manifests by name."""
    return {name: text for name in MANIFESTS if (text := _text(files, name)) is not None}


def _text(files: Store, path: str) -> str | None:
    try:
        return files.get(path, limit=_LARGEST).decode()
    except NotStored:
        return None
    except StoreError as error:
        raise UsageError(error.what, next_step=error.next_step) from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8", next_step="save it as UTF-8") from None


def stubs(project: AutopilotProject, phases: Sequence[str]) -> Iterator[str]:
    """Yield what the roadmap leaves open about these phases, with its line: such phases cannot be verified."""
    for phase in project.roadmap.phases:
        if phase.id not in phases:
            continue
        if is_left_open(phase.goal):
            yield _open_at(project.text, phase.id, GOAL, "goal")
        if not phase.criteria or any(is_left_open(each.text) for each in phase.criteria):
            yield _open_at(project.text, phase.id, CRITERIA, "success criteria")


def is_left_open(text: str) -> bool:
    """Return whether a text is only a placeholder.

    >>> [is_left_open(text) for text in ("TBD", "TBD: one sentence", "[To be planned]", "Users can sign in")]
    [True, True, True, False]
    """
    word, _, _ = text.partition(":")
    return is_stub(text) or is_stub(word) or text.upper().startswith(f"{_TO_BE_SAID} ")


def _open_at(text: str, phase_id: str, label: str, what: str) -> str:
    return f"{layout.ROADMAP}:{_line_of(text, phase_id, label)}: phase {phase_id} has no {what} yet"


def _line_of(text: str, phase_id: str, label: str) -> int:
    """Return the line of a phase's field, or of its heading if the field has no line."""
    found = 1
    is_inside = False
    for line in said_lines(text).said:
        heading = heading_of(line)
        if heading is not None:
            is_inside = _heads(heading.title, phase_id)
            found = line.number if is_inside else found
        elif is_inside and plain(line.text.partition(":")[0]).strip("*_- ").casefold().startswith(label):
            return line.number
    return found


def _heads(title: str, phase_id: str) -> bool:
    word, _, rest = plain(title.strip("*")).partition(" ")
    return word.casefold() == "phase" and phase_id_of(rest.partition(":")[0].strip()) == phase_id


def refuse_dirty(repository: Repository, state: Path) -> None:
    """Raise `UsageError` for uncommitted changes: a run's agents see only commits."""
    shadow = Shadow.open(state / "git", repository)
    head, work = repository.tree_of("HEAD"), shadow.worktree_tree(repository)
    changed = foreign_paths(tuple(change.path for change in shadow.diff(head, work))) if head != work else ()
    found = [path for path in changed if path != GITIGNORE or not _is_ours(repository)]
    if found:
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        listed = ", ".join(visible(path) for path in found[:_NAMED])
        raise UsageError(
            f"there are uncommitted changes: {listed}{more}", next_step="commit or stash them, then try again"
        )


def _is_ours(repository: Repository) -> bool:
    try:
        before = repository.git.run("cat-file", "blob", f"HEAD:{GITIGNORE}").decode(errors="replace")
    except FairWitnessError:
        before = ""
    return is_our_gitignore(before, _text(checkout_of(repository), GITIGNORE) or "")


def checkout_of(repository: Repository) -> Store:
    """Return the files of the checkout; raise `UsageError` for a bare repository."""
    if repository.top is None:
        raise UsageError("a bare repository has no checkout to read a roadmap from", next_step="go to a checkout of it")
    return Store(repository.top)
