"""The closing block of a run: how it ended or what it waits for, for a person who saw nothing before.

It says what was asked, what was done, what was proven, what it cost, how long it took, and where the result is.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairwitness.app.text import counted, safe_line, seconds_between, took
from fairwitness.app.views.agent_usage import read_usage, usage_line
from fairwitness.app.views.detail import FEATURE, FORGE, open_database, review_lines
from fairwitness.app.views.event_lines import first_line
from fairwitness.app.views.feature import FeatureView
from fairwitness.app.views.followed_run import FollowedRun, read_feature
from fairwitness.app.views.run import CANCELLED, RunView, WatchEnd
from fairwitness.errors import FairWitnessError
from fairwitness.ledger.anchors import last_anchor
from fairwitness.ledger.phase_summary import COMPLETED as PASSED
from fairwitness.ledger.phase_summary import DEFERRED, FAILED, NOT_STARTED, SKIPPED
from fairwitness.ledger.run_summary import AUTOPILOT
from fairwitness.ledger.summary import details, doubtful_tasks, events_of, graph_of

if TYPE_CHECKING:
    from pathlib import Path

    from fairwitness.app.views.inbox import PendingQuestion
    from fairwitness.db.base import Database
    from fairwitness.ledger.anchors import Anchor

LABEL = 10
_SHOWN = 3
_ABOUT, _REQUEST = 6, 200
"""How many lines of the context of a question, and how many characters of the request are shown."""
_WORDS = {
    "low_confidence": "NOT COMMITTED",
    "abandoned": "ENDED BY YOU",
    "error": "FAILED",
}
_REPORT = ".autopilot/completion-report.md"

Field = tuple[str, str]
"""A label and its text."""
_PLACES = {"proven": 1, "review": 2}
"""The fields of what was done that come after the others, in this order."""


def end_lines(run: FollowedRun, *, is_brief: bool = False) -> list[str]:
    """Return how a run ended or what it waits for; the first line says it in a few words.

    A brief block is made from the summary alone: it loads no contract, judges no evidence and reads no question's text.
    """
    view = run.view
    feature = read_feature(run.root, run.run_id) if view.workflow == FEATURE else None
    with open_database(run.root) as database:
        done = [
            *(_of_feature(feature, database, run) if feature is not None else _of_graph(database, run)),
            *(() if is_brief else _judged(database, run)),
        ]
        done.sort(key=lambda field: _PLACES.get(field[0], 0))
        fields = [
            *_question(run, feature, is_brief=is_brief),
            *_because(view),
            ("asked", _request(database, run.run_id) or view.request),
            *done,
            ("cost", usage_line(read_usage(database, run.run_id, is_worked_on=False))),
            ("time", took(seconds_between(view.began or view.last_time, view.last_time)) if view.last_time else ""),
            *_anchored(database, run),
        ]
    where = ("result", "evidence", "degraded", "undo", "merge", "report", "head", "anchored")
    fields.sort(key=lambda field: field[0] in where)  # the result and what to do with it come last
    return [_head(view, feature), *(f"{label:<{LABEL}}{safe_line(text, 400)}" for label, text in fields if text)]


def _anchored(database: "Database", run: FollowedRun) -> Iterator[Field]:
    """Yield the ledger head that a person may hold, and a remark if git does not keep it."""
    row = last_anchor(database, run.run_id) if run.view.is_over else None
    if row is not None:
        yield "head", row.held
        yield "anchored", not_in_git(run.root, row)


def not_in_git(root: "Path", row: "Anchor") -> str:
    """Return that git does not keep the head of an anchored run, and why; empty if it does or there is no repository.

    It takes two git processes and no contracts, because `status` shows it.
    """
    from fairwitness.git.ledger_heads import is_in_repository, kept_heads

    if not is_in_repository(root):
        return ""
    try:
        ref = kept_heads(root).get(row.run_id.replace(":", "-"))  # its name in refs
    except FairWitnessError as error:
        return f"in the user's state directory only: {error.what}"
    is_kept = ref is not None and (ref.anchor, ref.anchor_hash) == (row.number, row.hash)
    return "" if is_kept else "in the user's state directory only, not in git"


def _head(view: RunView, feature: FeatureView | None) -> str:
    word = _WORDS.get(view.status) or view.word.upper()
    if view.ended() is WatchEnd.BUDGET:
        word = "OUT OF BUDGET"
    elif view.ended() is WatchEnd.PERSON and view.status != "paused":
        word = "WAITING FOR YOU"
    elif (view.reason or "").startswith(CANCELLED):
        word = "CANCELLED"
    if feature is not None:
        about = feature.feature.slug + (
            f", confidence {feature.feature.confidence}" if feature.feature.confidence else ""
        )
    elif view.workflow == AUTOPILOT:
        counts = view.phases.counts()
        about = f"{counts['completed']} of {counted(counts['total'], 'phase')} passed"
    else:
        about = first_line(view.request)
    return f"{safe_line(word, 40)}: {safe_line(about)}"


def _because(view: RunView) -> Iterator[Field]:
    """Yield why a run did not reach its goal; the parts of a graded confidence are told apart."""
    if view.ended() is WatchEnd.COMPLETED or not view.reason:
        return
    for part in view.reason.removeprefix("nothing is committed: ").split("; ")[:_SHOWN]:
        limit, _, why = part.partition(": ")
        yield "because", f"{why} (confidence {limit})" if limit.startswith("at most ") and why else part
    if view.ended() is WatchEnd.BUDGET:
        yield "first", "raise the limit in fairwitness.toml; the run continues where it stopped"


def _question(run: FollowedRun, feature: FeatureView | None, *, is_brief: bool) -> Iterator[Field]:
    """Yield the open question, what is known about it, and each answer as a command."""
    if run.view.ended() is not WatchEnd.PERSON:
        return
    waiting = None if is_brief else _pending(run)
    if waiting is None:
        asked = feature.feature.question if feature is not None else None
        if asked is not None:
            yield "question", f"{asked.gate}: {', '.join(asked.options)}"
        elif run.view.status != "paused":  # a paused run says why below, and its next command continues it
            yield "waits", f"for {run.view.waits_for('')}"
        return
    from fairwitness.app.views.inbox import WANTS_WORDS

    yield "question", waiting.question.question
    for place, line in enumerate(waiting.question.context.splitlines()[:_ABOUT]):
        yield ("" if place else "about"), line
    yield "answers", ", ".join(f"{option.id} ({option.description})" for option in waiting.question.options)
    for option in waiting.question.options:
        words = ' --text "…"' if option.id in WANTS_WORDS else ""
        yield option.id, f"fairwitness answer {run.run_id} {option.id}{words}"


def _pending(run: FollowedRun) -> "PendingQuestion | None":
    from fairwitness.app.views.inbox import pending_question

    try:
        return pending_question(run.root, run.run_id)
    except FairWitnessError:  # a ledger may be read without its repository
        return None


def _judged(database: "Database", run: FollowedRun) -> Iterator[Field]:
    """Yield what only the rules can say: the checks that prove the result, and sealed files that were changed."""
    yield "proven", _proven(database, run.run_id)
    if run.view.workflow == FORGE and _order(database, run.run_id) and (broken := _broken_locks(run)):
        yield "changed", f"{', '.join(broken[:_SHOWN])}: sealed files; the run used what was approved"


def _of_feature(view: FeatureView, database: "Database", run: FollowedRun) -> Iterator[Field]:
    tasks = view.started_tasks()
    merged = sum(task.word == "merged" for task in tasks)
    plans = f" in {counted(view.feature.iteration, 'iteration')}" if view.feature.iteration > 1 else ""
    yield "done", f"{merged} of {counted(len(tasks), 'task')} merged{plans}" if tasks else _steps_done(view)
    if view.is_light:
        skipped = [step.name for step in view.feature.steps.values() if view.state_of(step) == "skipped"]
        yield "path", f"light, without {', '.join(skipped)}"
    elif view.feature.left_path is not None:
        yield "path", view.feature.left_path
    yield from _failed_tasks(run)
    yield "review", _review(view)
    order = _order(database, run.run_id)
    if view.feature.commit is not None:
        yield "result", f"commit {view.feature.commit[:12]}{_branches(run, view.feature.commit)}"
    elif merged:
        yield "result", f"nothing is committed; branch {order.get('target')} holds the merged tasks"
    else:
        yield "result", "nothing is committed; your branch is unchanged"
    yield "evidence", view.feature.bundle or ""
    for _, detail in view.feature.degradations[:2]:
        yield "degraded", detail
    yield "undo", (view.feature.rollback or "") if view.is_over else ""


def _review(view: FeatureView) -> str:
    """Return who approves in the last review; that of the design says nothing about the code of a run that is over."""
    reviews = view.feature.reviews
    if not reviews:
        return ""
    (scope, _), last = list(reviews.items())[-1]
    approve = f"{sum(last.values())} of {counted(len(last), 'reviewer')} approve{'s' * (len(last) == 1)}"
    if scope == "code":
        return approve
    return "the code was not reviewed" if view.is_over else f"{approve} the design"


def _failed_tasks(run: FollowedRun) -> Iterator[Field]:
    """Yield the tasks of a run that were given up, with the failing test, and how to ask the gate that decided."""
    for node in run.view.exhausted()[:_SHOWN]:
        yield "failed", f"{node.name}, after {counted(node.attempt, 'attempt')}: {node.error or 'no reason is known'}"
        gate = "EG-2" if run.view.workflow == FEATURE else "verify"
        yield "explain", f"fairwitness gate explain {run.run_id} {gate}:{node.name}"


def _steps_done(view: FeatureView) -> str:
    done = [step.name for step in view.feature.steps.values() if step.state == "done"]
    count = sum(view.state_of(step) != "skipped" for step in view.feature.steps.values())
    return f"{counted(len(done), 'step')} of {count}" + (f", the last was {done[-1]}" if done else "")


def _of_graph(database: "Database", run: FollowedRun) -> Iterator[Field]:
    """Yield what is known about a forge or autopilot run."""
    view, target = run.view, _target(database, run.run_id)
    if view.workflow == AUTOPILOT:
        yield "done", "; ".join(filter(None, (_phases(view, status) for status in _STATUSES)))
        ended = {event.phase: event.data for event in events_of(database, run.run_id, "phase_failed")}
        for phase in view.phases.at(FAILED)[:_SHOWN]:
            yield "failed", f"phase {phase}: {ended.get(phase, {}).get('reason') or 'no reason is known'}"
    else:
        counts = view.counts()
        failed = f"; {counts['failed']} failed" if counts["failed"] else ""
        yield "done", f"{counts['merged']} of {counted(counts['total'], 'task')} merged{failed}"
        yield from _of_forge(database, run)
    has_work = view.phases.at(PASSED) or view.counts()["merged"]
    if not target or not has_work:
        yield "result", "nothing is merged"
        return
    yield "result", f"branch {target} holds what was merged"
    yield "merge", f"git merge {target}"
    if view.workflow == AUTOPILOT and (run.root / _REPORT).exists():
        yield "report", _REPORT


_STATUSES = {PASSED: "passed", FAILED: "failed", SKIPPED: "skipped", DEFERRED: "for you", NOT_STARTED: "not started"}


def _phases(view: RunView, status: str) -> str:
    found = view.phases.at(status)
    return f"{_STATUSES[status]}: phase {', '.join(found)}" if found else ""


def _of_forge(database: "Database", run: FollowedRun) -> Iterator[Field]:
    yield from _failed_tasks(run)
    for node in run.view.exhausted()[:_SHOWN]:
        yield "retry", f"fairwitness retry {node.name}"
    disputed = dict.fromkeys(event.data["nodeId"] for event in events_of(database, run.run_id, "walkthrough.disputed"))
    if disputed:
        yield "refuted", f"{', '.join(disputed)}: the worker's account differs from what the checks found"
    yield from (("review", text) for text in review_lines(doubtful_tasks(database, run.run_id)))
    for event in events_of(database, run.run_id, "cr.emitted")[:_SHOWN]:
        yield "request", f"fairwitness cr show {event.data['crId']}"


def _broken_locks(run: FollowedRun) -> list[str]:
    """Return the sealed files of a forge run that were changed; none if the repository is not there."""
    from fairwitness.app.run_records.forge import open_forge_run
    from fairwitness.runs.forge.plan_files import broken_locks

    try:
        with open_forge_run(run.root, run.run_id) as context:
            return list(broken_locks(context.log, context.files, context.layout))
    except FairWitnessError:
        return []  # a ledger may be read without its repository


def _proven(database: "Database", run_id: str) -> str:
    """Return how many checks passed on the whole result, or on everything so far if nothing was merged."""
    if not database.read("SELECT 1 FROM anvil_checks WHERE run_id = ? LIMIT 1", (run_id,)):
        return ""
    from fairwitness.app.views.checks import checks_of_whole, read_checks  # it loads the contracts

    every = read_checks(database.read, run_id)
    found = checks_of_whole(every)
    where = "in all attempts"
    if found:
        where = "on the whole change" if found[0].task == "whole" else "on the last merge"
    found = found or [check for check in every if check.phase == "after"]
    passed = sum(check.passed for check in found)
    return f"{passed:,} of {counted(len(found), 'check')} passed {where}, run by Fair Witness" if found else ""


def _order(database: "Database", run_id: str) -> dict[str, Any]:
    found = details(database, run_id, "order")
    return (found[0].get("order") or {}) if found else {}


def _request(database: "Database", run_id: str) -> str:
    request = str(_order(database, run_id).get("request") or "")
    title, _, more = request.lstrip("# \n").partition("\n")
    return safe_line(": ".join(filter(None, (title.rstrip(), more.strip()))), _REQUEST)


def _target(database: "Database", run_id: str) -> str:
    options = (graph_of(database, run_id) or {}).get("options") or {}
    return str(_order(database, run_id).get("target") or options.get("target") or "")


def _branches(run: FollowedRun, commit: str) -> str:
    from fairwitness.git.repository import Repository

    try:
        git = Repository.open(run.root).git
        asked = ("for-each-ref", "--format=%(refname:short)", "--points-at", commit, "refs/heads/")
        names = git.run(*asked).decode(errors="replace").split()
    except FairWitnessError:
        return ""  # a ledger may be read without its repository
    return f" on {', '.join(names)}" if names else ""
