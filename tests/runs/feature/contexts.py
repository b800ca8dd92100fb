"""A feature run that has just begun, in a real repository: the demo's, with a ledger and stores beside it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairwitness.agents.prompt_text import render
from fairwitness.agents.roles import ROLES
from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.app.settings.verify import verify_settings
from fairwitness.contracts.agents.dispatch import Brief
from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.budgets import BudgetTable
from fairwitness.contracts.common.ids import baseline_tag, run_ref
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.feature.order import FeatureOrder
from fairwitness.demo.sessions import RecordedSession
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit import yaml_text
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.feature.context import FeatureContext, write_beginning
from fairwitness.sandbox.scripted import ScriptedRunner
from fairwitness.store.artifacts import Store
from support import demo_feature as demo

RUN = demo.DEMO.repository.committed_at
"""The run's id: the second it began."""
BEGAN = datetime(2026, 2, 26, 14, 30, tzinfo=UTC)
"""What its clock always says."""


def clock() -> datetime:
    """Stands still."""
    return BEGAN


def order_of(repository: Repository, home: Path, **differs: Any) -> FeatureOrder:
    """The demo's request, autonomous, from the checkout's commit; with words for what differs."""
    settings, digest = verify_settings(repository.top, user=home / "fairwitness.toml")
    plain: dict[str, Any] = {
        "request": demo.DEMO.request,
        "slug": demo.DEMO.slug,
        "mode": ApprovalMode.AUTONOMOUS,
        "base_commit": repository.head,
        "base_branch": repository.branch,
        "baseline_tag": baseline_tag(RUN),
        "target": f"fairwitness/{run_ref(RUN)}/target",
        "verify": settings.plain(),
        "settings_hash": f"sha256:{digest}",
        "started_by": "Demo <demo@localhost>",
    }
    return FeatureOrder.model_validate(plain | differs)


def context(tmp_path: Path, **order: Any) -> FeatureContext:
    """The room of a run whose beginning and order are written down; whoever asked closes its ledger."""
    repository = Repository.open(demo.DEMO.lay_out(tmp_path / "till"))
    assert repository.top is not None
    state = tmp_path / "state"
    state.mkdir()
    made = FeatureContext(
        run_id=RUN,
        order=order_of(repository, tmp_path, **order),
        repository=repository,
        shadow=Shadow.open(state / "git", repository),
        ledger=Ledger.open_file(state / "evidence.db", clock=clock),
        files=Store(repository.top),
        kept=Store(state),
        clock=clock,
    )
    begin(made)
    return made


def begin(context: FeatureContext) -> None:
    """Writes the run's first event and its order, in one record."""
    write_beginning(context, BudgetTable())


def store(context: FeatureContext, session: RecordedSession) -> None:
    """The documents of a recorded session, where the harness puts them."""
    layout, answer = context.layout, yaml_text.render(session.answer)
    match session.role:
        case Role.RESEARCHER:
            context.put(layout.research(session.instance.removeprefix("researcher-")), answer)
        case Role.SPEC:
            context.put(layout.spec, answer)
        case Role.DESIGNER:
            context.put(layout.design, answer)
        case Role.PLANNER:
            context.put(layout.plan, answer)
            for call in [call for turn in session.turns for call in turn.calls]:
                context.put(call.args["path"], call.args["content"])
        case Role.IMPLEMENTER:
            context.put(layout.implementation_report(session.instance), answer)
        case _:
            pass  # others are told by events and rows


def prompt_of(brief: Brief, worktree: Path) -> str:
    """The prompt, with the tools that a toolbox would offer."""
    tools = Toolbox(role=brief.role, scope=brief.scope, worktree=worktree, runner=ScriptedRunner(()))
    return render(ROLES[brief.role], brief, tools=[tool.name for tool in tools.offered()])


def shown(brief: Brief, title: str) -> str:
    """The one box of a title."""
    (text,) = [box.text for box in brief.inputs if box.title == title]
    return text
