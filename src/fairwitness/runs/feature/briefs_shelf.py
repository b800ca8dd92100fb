"""The documents of a feature run as boxes for those who work from them; read by their hash, as they were stored."""

from collections.abc import Iterable
from typing import Final

from fairwitness.contracts.agents.dispatch import PromptSection
from fairwitness.contracts.feature.plan import PlanOutput
from fairwitness.contracts.feature.research import Focus
from fairwitness.contracts.feature.task import TaskDocument
from fairwitness.errors import UsageError
from fairwitness.kit import yaml_text
from fairwitness.runs.feature.context import FeatureContext

_TASK: Final = "A task of it"


class StoredDocuments:
    """The documents of one run. A document that somebody cannot do without is there, or nobody is asked."""

    def __init__(self, context: FeatureContext) -> None:
        self._context, self._layout = context, context.layout

    def request(self) -> PromptSection:
        """What a person asked for, word for word."""
        return PromptSection(title="The request", text=self._context.order.request)

    def research(self) -> tuple[PromptSection, ...]:
        """What the researchers found, as many as there are."""
        return tuple(
            box
            for focus in Focus
            for box in self.if_there(f"Research: {focus.value}", self._layout.research(focus.value))
        )

    def specification(self) -> PromptSection:
        """The specification."""
        return self.stored("The specification", self._layout.spec)

    def design(self, title: str = "The design") -> PromptSection:
        """The design as it stands."""
        return self.stored(title, self._layout.design)

    def plan(self) -> tuple[PromptSection, ...]:
        """The plan, with the document of each of its tasks."""
        box = self.stored("The plan", self._layout.plan)
        return (box, *(self.stored(_TASK, path) for path in self._tasks(box)))

    def plan_so_far(self) -> tuple[PromptSection, ...]:
        """The plan for whoever makes the next; while that is being stored, documents of its tasks may be missing."""
        box = self.stored("The plan so far", self._layout.plan)
        return (box, *(found for path in self._tasks(box) for found in self.if_there(_TASK, path)))

    def _tasks(self, box: PromptSection) -> list[str]:
        plan = PlanOutput.model_validate(yaml_text.parse(box.text))
        return [self._layout.task(task.id) for task in plan.agent_output.payload.tasks]

    def pointed_into(self) -> dict[str, object]:
        """What the pointers of a task may point into, by file name."""
        return {
            path.rpartition("/")[2]: yaml_text.parse(self._text(path))
            for path in (self._layout.spec, self._layout.design)
        }

    def stored(self, title: str, path: str) -> PromptSection:
        """A document that must be there."""
        return PromptSection(title=title, text=self._text(path))

    def if_there(self, title: str, path: str) -> tuple[PromptSection, ...]:
        """A document that may be there."""
        content = self._context.get(path)
        return () if content is None else (PromptSection(title=title, text=content.decode()),)

    def _text(self, path: str) -> str:
        content = self._context.get(path)
        if content is None:
            raise UsageError(
                f"run {self._context.run_id} has no {path}", next_step=f"fairwitness status {self._context.run_id}"
            )
        return content.decode()


def task_box(document: TaskDocument) -> PromptSection:
    """A task as its planner wrote it."""
    return PromptSection(title="The task", text=yaml_text.render(document.plain()))


def said_box(said: str | None) -> tuple[PromptSection, ...]:
    """What a person said at a gate, if somebody did."""
    return () if said is None else (PromptSection(title="What a person said", text=said),)


def pages(title: str, texts: Iterable[str]) -> tuple[PromptSection, ...]:
    """One box for each text."""
    return tuple(PromptSection(title=title, text=text) for text in texts)


def listed(title: str, texts: Iterable[str]) -> tuple[PromptSection, ...]:
    """Short texts in one box; none if there are none."""
    lines = [f"- {text}" for text in texts]
    return (PromptSection(title=title, text="\n".join(lines)),) if lines else ()
