"""`evidence-bundle.md`: the page of one bundle. It names what is missing, and calls a claim a claim."""

from collections.abc import Iterator, Sequence

from fairwitness.contracts.common.evidence import Provenance
from fairwitness.contracts.common.gates import Blocked, GateAnswer
from fairwitness.contracts.common.vocabulary import Confidence, Risk
from fairwitness.contracts.feature.facts import Step
from fairwitness.contracts.feature.review import Category
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.kit.durations import took
from fairwitness.kit.markdown import Markdown, cell, code, counted, items, line, listed, table
from fairwitness.rules.confidence import AT_MOST
from fairwitness.rules.evidence_worth import LACKS, RowWorth
from fairwitness.rules.feature_paths import STEPS_OF, skipped_steps
from fairwitness.runs.feature.bundle_model import CheckedTask, Reviewer, Round, RunBundle, Telemetry
from fairwitness.runs.feature.metrics_pages import evaluations_part, seconds, slowest_steps, statuses

HEADINGS = (
    "## 1. Confidence",
    "## 2. Verification",
    "## 3. Review",
    "## 4. Rollback",
    "## 5. Blast radius",
    "## 6. Known issues",
    "## 7. Telemetry",
    "## 8. Evaluations",
    "## Degradations and approvals",
    "## The ledger",
    "## Next",
)

COLUMNS: tuple[tuple[str, frozenset[RowWorth]], ...] = (
    ("Passed", frozenset({RowWorth.COUNTS})),
    ("Holds", frozenset({RowWorth.HOLDS})),
    ("Failed", frozenset({RowWorth.FAILED})),
    ("Needs a person", frozenset({RowWorth.ASKS})),
    ("Regressed", frozenset({RowWorth.REGRESSED})),
    ("Red before too", frozenset({RowWorth.RED_BEFORE_TOO})),
    ("No evidence", LACKS),
    ("Not heard", frozenset({RowWorth.SILENT, RowWorth.UNKNOWN})),
)
"""The columns in which a check can count: each worth is in exactly one column."""

MEANS: dict[Confidence, str] = {
    Confidence.HIGH: "every gate is open, every reviewer approves, and nothing on record speaks against it",
    Confidence.MEDIUM: "it may be committed; read the reasons and skim the change",
    Confidence.LOW: "it is not committed by itself; somebody has to read the change first",
}


def bundle_page(bundle: RunBundle) -> str:
    """Return the page; the same bundle gives the same bytes."""
    state = bundle.state
    parts = (
        (Markdown(f"# Evidence bundle: {line(state.slug)}"), _about(bundle)),
        *zip(
            map(Markdown, HEADINGS),
            (
                _confidence(bundle),
                _verification(bundle),
                _review(bundle),
                _rollback(bundle),
                _blast_radius(bundle),
                _issues(bundle),
                _telemetry(bundle.telemetry),
                evaluations_part(bundle.evaluations),
                _less_and_answers(bundle),
                _ledger(bundle),
                _next(bundle),
            ),
            strict=True,
        ),
    )
    return "\n\n".join(block for heading, blocks in parts for block in (heading, *blocks)) + "\n"


def _about(bundle: RunBundle) -> Iterator[Markdown]:
    state = bundle.state
    yield Markdown(f"Run {code(state.run_id)}, {state.mode.value}, from commit {code(state.base_commit)}.")
    yield from _path(state)
    yield Markdown(
        "Assembled by Fair Witness from its ledger: executed checks, things it saw, and claims of agents, called so."
    )


def _path(state: FeatureState) -> Iterator[Markdown]:
    skipped = skipped_steps(state.path, state.steps)
    if skipped:
        yield Markdown(f"On the {state.path.value} path, without {listed([step.value for step in skipped])}.")
    if state.left_path is not None:
        yield Markdown(f"It began on the light path and left it: {line(state.left_path.reason)}.")


def _confidence(bundle: RunBundle) -> Iterator[Markdown]:
    level = bundle.confidence.level
    yield Markdown(f"**{level.value}**: {MEANS[level]}.")
    yield items([Markdown(f"- {line(why)}") for why in bundle.confidence.because], "Nothing speaks against it.")


def _verification(bundle: RunBundle) -> Iterator[Markdown]:
    everything = (*bundle.tasks, *([bundle.whole] if bundle.whole is not None else []))
    yield table(
        ("Task", "Verified", "Risk", "Size", "Iteration", "Counted", *(name for name, _ in COLUMNS), "Claims"),
        [_checked(each) for each in everything],
        "No evidence: no task of this run was checked.",
    )
    if bundle.whole is None:
        yield Markdown("No evidence: the tree to be committed was never checked as a whole.")
    regressions = [f"{each.name}: {', '.join(each.regressions)}" for each in everything if each.regressions]
    yield items([Markdown(f"- regressed: {line(each)}") for each in regressions], "No regression is on record.")
    for each in everything:
        shut = [gate for gate in each.gates if isinstance(gate, Blocked)]
        if shut:
            yield Markdown(f"What {code(each.name)} lacks:")
            yield _missing(shut)
    if bundle.elsewhere:
        yield Markdown("Also on record, about merged trees, fixes, and tasks that were replaced or given up:")
        yield table(
            ("Task", "Rows", "Passed"),
            [(code(each.name), str(each.rows), str(each.passed)) for each in bundle.elsewhere],
            "",
        )


def _checked(each: CheckedTask) -> tuple[str, ...]:
    gate = each.gates[-1]
    risk = (
        each.risk.value if each.risk is each.planned_risk else f"{each.risk.value} (planned {each.planned_risk.value})"
    )
    return (
        Markdown(f"{code(each.name)}{' (the whole change)' if each.is_whole else ''}"),
        "yes" if each.is_verified else Markdown("**no**"),
        risk,
        each.size.value,
        str(each.iteration),
        f"{gate.count} of {gate.threshold}",
        *(str(sum(each.standings.get(standing, 0) for standing in kinds)) for _, kinds in COLUMNS),
        str(each.sources.get(Provenance.CLAIMED, 0)),
    )


def _missing(shut: Sequence[GateAnswer]) -> Markdown:
    entries = [
        Markdown(f"- {gate.gate.value}: {line(gate.because)}; missing: {line(', '.join(gate.missing))}")
        for gate in shut
        if isinstance(gate, Blocked)
    ]
    return items(entries, "Nothing.")


def _review(bundle: RunBundle) -> Iterator[Markdown]:
    yield Markdown("Verdicts are claims of agents; gates count them, and one blocker is never outvoted.")
    for each in bundle.rounds:
        yield from _round(each)
    for scope in ("design", "code"):
        if scope == "design" and Step.DESIGN_REVIEW not in STEPS_OF[bundle.state.path]:
            yield Markdown("There was no design review: the light path has none.")
        elif not any(each.scope.value == scope for each in bundle.rounds):
            yield Markdown(f"No evidence: no verdict about the {scope} is on record.")
    if bundle.unheard:
        yield Markdown(f"{bundle.unheard} review rows belong to no round or check that a gate knows.")


def _round(each: Round) -> Iterator[Markdown]:
    yield Markdown(f"**{each.scope.value.capitalize()} review, round {each.number}**: {each.situation.value}.")
    yield table(
        ("Perspective", *(category.value for category in Category), "Findings", "Earlier findings"),
        [_reviewer(reviewer) for reviewer in each.reviewers],
        "",
    )
    shut = [gate for gate in each.gates if isinstance(gate, Blocked)]
    if shut:
        yield _missing(shut)
    if each.strangers:
        yield Markdown(f"Rows of reviewers that nobody knows: {listed(each.strangers)}.")


def _reviewer(reviewer: Reviewer) -> tuple[str, ...]:
    said = []
    for category in Category:
        row = reviewer.rows.get(category)
        if row is None or row.verdict is None:
            said.append(Markdown("**nothing filed**"))
        else:
            said.append(cell(f"{row.verdict.value} ({row.severity.value})" if row.severity else row.verdict.value))
    findings = "not on record" if reviewer.findings is None else str(len(reviewer.findings))
    earlier = ", ".join(f"{each.id} {each.resolution.value}" for each in reviewer.earlier)
    return (reviewer.perspective, *said, findings, earlier)


def _rollback(bundle: RunBundle) -> Iterator[Markdown]:
    state = bundle.state
    yield Markdown(f"Everything back to where the run began: {code(f'fairwitness rollback {state.run_id}')}")
    if state.rollback_command is not None:
        yield Markdown(f"By hand, as recorded with the commit: {code(state.rollback_command)}")
    else:
        by_hand = f"git revert --no-commit {state.baseline_tag}..HEAD"
        yield Markdown(f"By hand, once it is committed and on its branch: {code(by_hand)}")


def _blast_radius(bundle: RunBundle) -> Iterator[Markdown]:
    counts = ", ".join(f"{sum(file.colour is risk for file in bundle.files)} {risk.value}" for risk in reversed(Risk))
    regressed = {check for each in (*bundle.tasks, bundle.whole) if each is not None for check in each.regressions}
    yield Markdown(f"{counted(len(bundle.files), 'file')}: {counts}. Regressions: {len(regressed)}.")
    if bundle.whole is None:
        yield Markdown("The whole change was not looked at, so these are the files of its tasks.")
    yield table(
        ("File", "Risk", "Change", "Tasks", "To be committed"),
        [
            (
                code(file.path),
                file.colour.value,
                file.change.value,
                listed(file.tasks, "none"),
                "yes" if file.is_committed else "unknown" if bundle.whole is None else "no",
            )
            for file in bundle.files
        ],
        "No evidence: no changed file is on record.",
    )


def _issues(bundle: RunBundle) -> Iterator[Markdown]:
    yield table(
        ("Severity", "Issue", "By", "Kind"),
        [
            (
                each.severity.value if each.severity is not None else "not rated",
                each.what,
                each.source,
                "claim" if each.is_claim else "evidence",
            )
            for each in bundle.issues
        ],
        "None is on record.",
    )


def _dispatches(count: int) -> str:
    return f"{count} dispatch{'' if count == 1 else 'es'}"


def _telemetry(telemetry: Telemetry) -> Iterator[Markdown]:
    rows = telemetry.rows
    yield Markdown(f"{_dispatches(len(rows))}, {took(sum(map(seconds, rows)))} together: {statuses(rows)}.")
    yield Markdown(
        f"Tokens: {telemetry.tokens_in} in, {telemetry.tokens_out} out, counted for {telemetry.counted} of "
        f"{_dispatches(len(rows))}{'' if telemetry.counted >= len(rows) else '; the others are not known'}."
    )
    dollars, rest = divmod(telemetry.cost_micros, 1_000_000)
    known = f"{dollars}.{rest:06} USD, known for {telemetry.priced} of {_dispatches(len(rows))}"
    yield Markdown(f"Cost: {known if telemetry.priced else 'not known for any dispatch'}.")
    yield Markdown(f"Models: {listed(telemetry.models, 'not reported')}. Refused calls: {telemetry.refused}.")
    if telemetry.unfinished:
        yield Markdown(f"Begun and not ended: {listed(telemetry.unfinished)}.")
    yield table(
        ("Slowest step", "Took"), [(code(step), took(length)) for step, length in slowest_steps(rows)], "No step."
    )


def _less_and_answers(bundle: RunBundle) -> Iterator[Markdown]:
    yield table(
        ("Degradation", "Detail", "Confidence at most"),
        [(code(each.kind.value), each.detail or "no event tells it", AT_MOST[each.kind].value) for each in bundle.less],
        "No degradation is on record.",
    )
    yield table(
        ("Question", "Answer", "By", "auto_selected", "Mode", "When", "In words"),
        [
            (
                code(each.gate),
                code(each.option),
                each.actor,
                Markdown("**true**: nobody was asked") if each.is_auto else "false",
                each.mode.value,
                each.when,
                each.said or "",
            )
            for each in bundle.answers
        ],
        "No approval is on record.",
    )
    if bundle.waiting:
        yield Markdown(f"Still waiting for an answer: {listed(bundle.waiting)}.")


def _ledger(bundle: RunBundle) -> Iterator[Markdown]:
    links = bundle.head.links
    yield Markdown(f"All of the above stands in the run's chain of {counted(links, 'link')}, which ended in:")
    yield code(bundle.head.hash)
    yield Markdown(f"{code('fairwitness ledger verify')} checks every row and link; link {links} must have this hash.")


def _next(bundle: RunBundle) -> Iterator[Markdown]:
    state = bundle.state
    see = f"git diff {state.baseline_tag} feature/{state.slug}"
    first = ("read the change", see) if bundle.may_commit else ("not committed by itself: read the change first", see)
    commands = (
        first,
        ("the whole run on one page", f"fairwitness report {state.run_id}"),
        ("whether the evidence is as it was written", "fairwitness ledger verify"),
        ("whether the same facts lead to the same decisions", f"fairwitness replay {state.run_id}"),
        ("undo it", f"fairwitness rollback {state.run_id}"),
    )
    yield items([Markdown(f"- {what}: {code(command)}") for what, command in commands], "")
