"""The briefs of a feature run's agents: task, documents, scope and document header.

Text from people, repositories or agents goes into prompt sections as data; tasks and titles are our own words. Building
a brief writes nothing, so it can be repeated.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from fairwitness.contracts.agents.dispatch import Brief, PromptSection
from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.tools import Role, Scope
from fairwitness.contracts.feature.facts import Step
from fairwitness.contracts.feature.plan import PlanOutput, TaskDocument
from fairwitness.contracts.feature.pushback import PushbackOption
from fairwitness.contracts.feature.research import Focus
from fairwitness.contracts.feature.review import Perspective, ReviewScope
from fairwitness.errors import UsageError
from fairwitness.kit import yaml_text
from fairwitness.rules.feature_plan import Dead, resolve_pointer
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.tasks import FIX_NODE, writes_of
from fairwitness.runs.shared.sections import document_section, list_section, text_section

_TASK: Final = "Task of the plan"


class StoredDocuments:
    """The stored documents of one run as prompt sections. A required document that is missing is an error."""

    def __init__(self, context: FeatureContext) -> None:
        self._context, self._layout = context, context.layout

    def request(self) -> PromptSection:
        """Return the person's request, verbatim."""
        return PromptSection(title="The request", text=self._context.order.request)

    def research(self) -> tuple[PromptSection, ...]:
        """Return what the researchers found, as far as they answered."""
        return tuple(
            box
            for focus in Focus
            for box in self.if_there(f"Research: {focus.value}", self._layout.research(focus.value))
        )

    def specification(self) -> PromptSection:
        """Return the specification."""
        return self.stored("The specification", self._layout.spec)

    def design(self, title: str = "The design") -> PromptSection:
        """Return the current design."""
        return self.stored(title, self._layout.design)

    def plan(self) -> tuple[PromptSection, ...]:
        """Return the plan with the document of each of its tasks."""
        box = self.stored("The plan", self._layout.plan)
        return (box, *(self.stored(_TASK, path) for path in self._tasks(box)))

    def plan_so_far(self) -> tuple[PromptSection, ...]:
        """Return the plan for the agent that makes the next one; documents of its tasks may be missing meanwhile."""
        box = self.stored("The plan so far", self._layout.plan)
        return (box, *(found for path in self._tasks(box) for found in self.if_there(_TASK, path)))

    def _tasks(self, box: PromptSection) -> list[str]:
        plan = PlanOutput.model_validate(yaml_text.parse(box.text))
        return [self._layout.task(task.id) for task in plan.agent_output.payload.tasks]

    def pointed_into(self) -> dict[str, object]:
        """Return the documents that a task's pointers may name, by file name; a light path has only the request."""
        found: dict[str, object] = {_name(self._layout.initial_request): {"request": self._context.order.request}}
        for path in (self._layout.spec, self._layout.design):
            content = self._context.get(path)
            if content is not None:
                found[_name(path)] = yaml_text.parse(content.decode())
        return found

    def stored(self, title: str, path: str) -> PromptSection:
        """Return a document that must exist."""
        return PromptSection(title=title, text=self._text(path))

    def if_there(self, title: str, path: str) -> tuple[PromptSection, ...]:
        """Return a document if it exists."""
        content = self._context.get(path)
        return () if content is None else (PromptSection(title=title, text=content.decode()),)

    def _text(self, path: str) -> str:
        content = self._context.get(path)
        if content is None:
            raise UsageError(
                f"run {self._context.run_id} has no {path}", next_step=f"fairwitness status {self._context.run_id}"
            )
        return content.decode()


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def task_box(document: TaskDocument) -> PromptSection:
    """Return a task as its planner wrote it."""
    return document_section("The task", document)


def said_box(said: str | None) -> tuple[PromptSection, ...]:
    """Return what a person wrote at a gate, if anything."""
    return () if said is None else (PromptSection(title="What a person said", text=said),)


def pages(title: str, texts: Iterable[str]) -> tuple[PromptSection, ...]:
    """Return one section for each text."""
    return tuple(PromptSection(title=title, text=text) for text in texts)


_WHOLE: Final = "payload"
"""A pointer to this names a whole document instead of a section."""


def implementer_boxes(document: TaskDocument, documents: Mapping[str, object]) -> tuple[PromptSection, PromptSection]:
    """Return the task, and the sections that its pointers name; nothing else of the documents.

    A pointer is an agent's text, so it is inside the section and never in its title. If a pointer does not resolve, a
    note says so.
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


SCHEMA_VERSION: Final = "1.0"
_RATED: Final = "artifact_evaluations[].artifact_path"
_PAYLOAD: Final = "agent_output.payload"
_AGAIN: Final = (
    " An earlier attempt failed, and its change was discarded: you start from the code without it. Find the cause in"
    " what failed before you write, and do not repeat it."
)
_REPLAN: Final = "Replace or split the tasks that failed; keep the others as they are."
_PLAN: Final = {"initial": "Cut the design into tasks.", "replan": _REPLAN}
_LIGHT_PLAN: Final = {"initial": "Cut the request into tasks, into one if that is enough.", "replan": _REPLAN}
_NO_DESIGN: Final = (
    "There is no specification and no design: look at the code first, and say in each task what its implementer needs"
    " to know. `design_sections` and `spec_requirements` are both `initial-request.md#request`: it shows the request."
)
_PUSHBACK: Final = f"{_PAYLOAD}.pushback_log"


class FeatureBriefs:
    """The briefs of one run."""

    def __init__(self, context: FeatureContext, memories: tuple[str, ...] = ()) -> None:
        """`memories` are what earlier runs learned."""
        self._context, self._layout = context, context.layout
        self._shelf = StoredDocuments(context)
        self._memories = list_section("Notes of earlier runs", memories)

    def intake(self, dispatch_id: str, *, said: str | None) -> Brief:
        """Return the brief of the intake agent, which reads the request first."""
        return self._brief(
            dispatch_id,
            Role.INTAKE,
            "intake",
            "Read the request and say what is doubtful about it.",
            inputs=(self._shelf.request(), *said_box(said)),
            scope=Scope(),
        )

    def researcher(self, dispatch_id: str, focus: Focus, *, said: str | None) -> Brief:
        """Return the brief of a researcher with one focus."""
        instance = f"researcher-{focus.value}"
        return self._brief(
            dispatch_id,
            Role.RESEARCHER,
            instance,
            f"Report what the repository says about the request, as far as it concerns {focus.value}.",
            parameters={"focus": focus.value},
            inputs=(self._shelf.request(), *said_box(said), *self._memories),
            known=self._header(Role.RESEARCHER, instance, Step.RESEARCH, self._layout.research(focus.value))
            | {f"{_PAYLOAD}.focus": focus.value},
        )

    def spec(self, dispatch_id: str, *, mode: ApprovalMode, said: str | None, concerns: tuple[str, ...] = ()) -> Brief:
        """Return the brief of the spec agent."""
        is_autonomous = mode is ApprovalMode.AUTONOMOUS
        known = {f"{_PUSHBACK}.mode": mode.value, f"{_PUSHBACK}.auto_selected": is_autonomous}
        if is_autonomous:
            known[f"{_PUSHBACK}.selected_option"] = PushbackOption.PROCEED.value
        return self._brief(
            dispatch_id,
            Role.SPEC,
            "spec",
            "Specify what the request asks for. Write `pushback_log` in any case, also if it has no concern.",
            parameters={"mode": mode.value},
            inputs=(
                self._shelf.request(),
                *list_section("Concerns about the request", concerns),
                *self._shelf.research(),
                *self._shelf.if_there("Your specification so far", self._layout.spec),
                *said_box(said),
            ),
            scope=Scope(folder=self._layout.folder, interactive=not is_autonomous),
            known=self._header(Role.SPEC, "spec", Step.SPEC, self._layout.spec) | known,
        )

    def designer(self, dispatch_id: str, *, findings: tuple[PromptSection, ...], said: str | None) -> Brief:
        """Return the brief of the designer; with findings it revises the design."""
        earlier: tuple[PromptSection, ...] = ()
        task = "Design how the specification is met."
        if findings:
            task = "Revise your design: answer every finding of the review."
            earlier = (self._shelf.design("Your design so far"), *findings)
        return self._brief(
            dispatch_id,
            Role.DESIGNER,
            "designer",
            task,
            inputs=(self._shelf.specification(), *self._shelf.research(), *earlier, *said_box(said)),
            known=self._header(Role.DESIGNER, "designer", Step.DESIGN, self._layout.design),
        )

    def reviewer(
        self,
        dispatch_id: str,
        perspective: Perspective,
        scope: ReviewScope,
        round_: int,
        *,
        change: str | None,
        earlier: tuple[PromptSection, ...],
    ) -> Brief:
        """Return the brief of a reviewer of the design or the code; `earlier` are findings that it should know."""
        if scope is ReviewScope.DESIGN:
            task = "Review the design against the specification."
            inputs: tuple[PromptSection, ...] = (self._shelf.specification(), self._shelf.design())
        elif change is None:
            raise UsageError("there is no code to be reviewed", next_step="hand over the change")
        else:
            specified = self._shelf.if_there("The specification", self._layout.spec)  # none on the light path
            task = f"Review the change against the {'specification' if specified else 'request'} and the plan."
            inputs = (self._shelf.request(), *specified, *self._shelf.plan())
        shown = () if change is None else (PromptSection(title="The change", text=change),)
        return self._brief(
            dispatch_id,
            Role.REVIEWER,
            perspective.value,
            task,
            parameters={"perspective": perspective.value, "scope": scope.value, "round": str(round_)},
            inputs=(*inputs, *shown, *earlier),
            known={
                "schema_version": SCHEMA_VERSION,
                "reviewer_perspective": perspective.value,
                "scope": scope.value,
                "round": round_,
                _RATED: self._layout.design if scope is ReviewScope.DESIGN else self._layout.plan,
            },
        )

    def planner(
        self,
        dispatch_id: str,
        *,
        mode: Literal["initial", "replan"],
        findings: tuple[PromptSection, ...],
        refused: tuple[str, ...],
        failing: Mapping[str, tuple[PromptSection, ...]],
        said: str | None,
        understood: tuple[PromptSection, ...] | None = None,
    ) -> Brief:
        """Return the brief of the planner: `findings` bind the plan, `refused` is what was wrong with the last one,
        `failing` is what is known of failed tasks.

        On the light path there is no specification and no design: `understood` is what the intake agent said instead.
        """
        begun = self._context.get(self._layout.plan) is not None
        task = _PLAN[mode] if understood is None else f"{_LIGHT_PLAN[mode]} {_NO_DESIGN}"
        return self._brief(
            dispatch_id,
            Role.PLANNER,
            "planner",
            f"{task} Write the document of every task of the plan, also of those that stay. Ids begin with task-01. A"
            " task names in `files_to_modify` each file it may touch, tests and new files included, without wildcards:"
            " its implementer can write no other.",
            parameters={"mode": mode},
            inputs=(
                *(
                    (self._shelf.specification(), self._shelf.design())
                    if understood is None
                    else (self._shelf.request(), *understood)
                ),
                *(self._shelf.plan_so_far() if begun or mode == "replan" else ()),
                *findings,
                *list_section("Why your last plan was refused", refused),
                *(_of_task(name, section) for name, sections in failing.items() for section in sections),
                *said_box(said),
            ),
            known=self._header(Role.PLANNER, "planner", Step.PLAN, self._layout.plan),
        )

    def implementer(
        self,
        dispatch_id: str,
        task: TaskDocument,
        *,
        before: tuple[PromptSection, ...],
        findings: tuple[PromptSection, ...] = (),
    ) -> Brief:
        """Return the brief of an implementer: one task with the sections it points to, and nothing else of any
        document; `before` is what is known of the attempt before it, `findings` what the design review left open."""
        name = task.task.id
        return self._implementer(
            dispatch_id,
            name,
            f"Carry out {name}." + (_AGAIN if before else ""),
            inputs=(
                *implementer_boxes(task, self._shelf.pointed_into()),
                *findings,
                *before,
                *self._memories,
            ),
            writes=writes_of(task),
            known={f"{_PAYLOAD}.finding_answers": None},  # only a fixer answers findings
        )

    def fixer(
        self,
        dispatch_id: str,
        findings: tuple[PromptSection, ...],
        writes: tuple[str, ...],
        *,
        known: tuple[PromptSection, ...] = (),
    ) -> Brief:
        """Return the brief of the agent that repairs what the code review found; `known` are other open findings."""
        if not findings:
            raise UsageError("there is nothing to be repaired", next_step="hand over the findings")
        return self._implementer(
            dispatch_id,
            FIX_NODE,
            "Repair what the reviewers found in the code, and nothing else. The findings are your task document. Answer"
            " each of them in `finding_answers`, by its id: what you changed, or why you left it as it is. The"
            " reviewers read your answers. A fix that changes no file is dropped.",
            inputs=(*findings, *known, *self._memories),
            writes=writes,
        )

    def verifier(
        self,
        dispatch_id: str,
        task: TaskDocument,
        *,
        changed: tuple[str, ...],
        change: str,
        seen: str,
        commands: tuple[str, ...],
    ) -> Brief:
        """Return the brief of a task's verifier.

        `seen` is what the harness ran; `commands` is how the commands that judge criteria may begin.
        """
        name = task.task.id
        report = self._layout.implementation_report(name)
        return self._brief(
            dispatch_id,
            Role.VERIFIER,
            name,
            f"Find out whether {name} does what it had to do.",
            parameters={"task_id": name},
            inputs=(
                task_box(task),
                PromptSection(title="Files that were changed", text="\n".join(changed) or "(none)"),
                PromptSection(title="The change", text=change),
                *self._shelf.if_there("The implementer's report", report),
                PromptSection(title="What the program ran", text=seen or "(nothing)"),
                *list_section("How the command of a criterion may begin", commands),
            ),
            scope=Scope(),  # no output folder: it must not change the tree it judges
            known=self._header(Role.VERIFIER, name, Step.VERIFY, self._layout.verification_report(name))
            | {
                f"{_PAYLOAD}.task_id": name,
                f"{_PAYLOAD}.run_id": self._context.run_id,
                f"{_PAYLOAD}.{_RATED}": report,
            },
        )

    def knowledge(
        self,
        dispatch_id: str,
        *,
        summary: str,
        findings: tuple[PromptSection, ...] = (),
        failing: Mapping[str, tuple[PromptSection, ...]] | None = None,
        counts: str = "",
    ) -> Brief:
        """Return the brief of the knowledge agent.

        `summary` describes the run, `findings` is what stays open, `failing` is what is known of failed tasks,
        and `counts` is what the ledger says about its calls.
        """
        return self._brief(
            dispatch_id,
            Role.KNOWLEDGE,
            Role.KNOWLEDGE.value,
            "Write down what this run taught.",
            inputs=(
                PromptSection(title="The run", text=summary),
                *self._shelf.if_there("The specification", self._layout.spec),
                *self._shelf.if_there("The design", self._layout.design),
                *self._shelf.if_there("The plan", self._layout.plan),
                *findings,
                *(_of_task(name, section) for name, sections in (failing or {}).items() for section in sections),
                *text_section("What the ledger counts", counts),
                *self._shelf.if_there("Decisions so far", self._layout.decisions),
            ),
            known=self._header(Role.KNOWLEDGE, Role.KNOWLEDGE.value, Step.KNOWLEDGE, self._layout.knowledge),
        )

    def _implementer(
        self,
        dispatch_id: str,
        name: str,
        task: str,
        *,
        inputs: tuple[PromptSection, ...],
        writes: tuple[str, ...],
        known: dict[str, Any] | None = None,
    ) -> Brief:
        return self._brief(
            dispatch_id,
            Role.IMPLEMENTER,
            name,
            task,
            parameters={"task_id": name},
            inputs=inputs,
            # No output folder: a report written into the worktree would be part of the change.
            scope=Scope(writes=writes),
            known=self._header(Role.IMPLEMENTER, name, Step.IMPLEMENT, self._layout.implementation_report(name))
            | {
                f"{_PAYLOAD}.task_id": name,
                f"{_PAYLOAD}.self_check.git_staged": False,
                f"{_PAYLOAD}.{_RATED}": self._layout.plan if name == FIX_NODE else self._layout.task(name),
            }
            | (known or {}),
        )

    def _brief(
        self,
        dispatch_id: str,
        role: Role,
        instance: str,
        task: str,
        *,
        inputs: tuple[PromptSection, ...],
        parameters: dict[str, str] | None = None,
        scope: Scope | None = None,
        known: dict[str, Any] | None = None,
    ) -> Brief:
        return Brief(
            dispatch_id=dispatch_id,
            run_id=self._context.run_id,
            role=role,
            instance=instance,
            task=task,
            parameters=parameters or {},
            inputs=inputs,
            scope=Scope(folder=self._layout.folder) if scope is None else scope,
            known=known or {},
        )

    def _header(self, role: Role, instance: str, step: Step, output: str) -> dict[str, Any]:
        """Return the header fields that an agent cannot know about its own document."""
        now = self._context.now()
        header = {
            "agent": role.value,
            "instance": instance,
            "step": step.value,
            "started_at": now,
            "completed_at": now,
            "schema_version": SCHEMA_VERSION,
        }
        return {f"agent_output.{name}": value for name, value in header.items()} | {"completion.output_paths": [output]}


def _of_task(task: str, section: PromptSection) -> PromptSection:
    return PromptSection(title=f"{task}, which failed: {section.title}", text=section.text)
