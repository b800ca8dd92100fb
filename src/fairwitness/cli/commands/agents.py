"""`fairwitness agents`: lists, shows, tries and exports the roles."""

import dataclasses
import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairwitness.cli.exit_codes import ExitCode
from fairwitness.cli.screens.progress import ProgressLine, spell_seconds

if TYPE_CHECKING:  # the real import waits until a command needs it
    from fairwitness.app.agents.roles import ListedRole
    from fairwitness.app.agents.trial import TrialResult
    from fairwitness.contracts.agents.dispatch import Happening

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_WIDTH = 78


@click.group(name="agents", context_settings=_SETTINGS)
def command() -> None:
    """The roles of agents, what each role may do, and which agent plays it here."""


@command.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_command(as_json: bool) -> int:
    """List every role with its workflow, its agent and the form of its answer."""
    from fairwitness.app.agents.roles import list_roles, settings_notes

    roles = list_roles(Path.cwd())
    for note in settings_notes(Path.cwd()):
        click.echo(note, err=True)
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(role) for role in roles], indent=2))
        return ExitCode.REACHED
    click.echo(f"{'ROLE':<21} {'WORKFLOW':<9} {'AGENT':<15} ANSWER")
    for role in roles:
        agent = role.agent or ("(this program)" if role.answer is None else "(none found)")
        click.echo(f"{role.name:<21} {role.workflow:<9} {agent:<15} {role.answer or '-'}"[:80])
    click.echo(f"\n{len(roles)} roles.", err=True)
    if any(role.agent is None and role.answer is not None for role in roles):
        click.echo("next:  fairwitness doctor shows which agents and keys are missing", err=True)
    else:
        click.echo("next:  fairwitness agents show ROLE, or fairwitness agents try ROLE", err=True)
    return ExitCode.REACHED


@command.command(name="show")
@click.argument("role")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show_command(role: str, as_json: bool) -> int:
    """Show the instructions of ROLE, its tools and their scopes, and the form of its answer."""
    from fairwitness.app.agents.roles import settings_notes, show_role

    shown = show_role(role, Path.cwd())
    for note in settings_notes(Path.cwd()):
        click.echo(note, err=True)
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(shown), indent=2, ensure_ascii=False))
        return ExitCode.REACHED
    about = shown.role
    click.echo(f"{about.title} ({about.name}, {about.workflow})")
    click.echo(textwrap.fill(about.purpose, _WIDTH))
    facts = {
        "agent": f"{about.agent or '(none found)'}{f', model {about.model}' if about.model else ''}",
        "answer": about.answer or "(none: it is this program)",
        "status": ", ".join(about.statuses) or "(no completion)",
        "instances": ", ".join(about.instances) or "(one)",
        "time": spell_seconds(about.timeout_s),
        "budget": _budget(about),
        "writes": ", ".join(about.writes) or "(nothing)",
        "commands": ", ".join(shown.commands) or "(none)",
        "tools": ", ".join(f"{tool}{'' if how == 'allowed' else f' ({how})'}" for tool, how in shown.tools.items()),
    }
    for name, text in facts.items():
        click.echo(textwrap.fill(text or "(none)", _WIDTH, initial_indent=f"{name:<10} ", subsequent_indent=" " * 11))
    click.echo(f"\n{shown.words.rstrip()}")
    if shown.fields:
        click.echo(f"\n## The form of its answer\n\n{shown.fields}")
    return ExitCode.REACHED


def _budget(about: "ListedRole") -> str:
    """Return the limits of one call, as they are enforced."""
    tokens, micros = about.budget.get("tokens", 0), about.budget.get("money_micros", 0)
    parts = [f"{tokens:,} tokens", f"{micros / 1_000_000:.2f} dollars"]
    if about.is_priced is False:
        parts[1] = "dollars not counted, since the price of its model is unknown"
    parts.append(f"{about.turns} model calls")
    if about.own_prompt:
        parts.append(f"of which {about.own_prompt:,} tokens are for the prompt that {about.agent} itself sends")
    return ", ".join(parts)


@command.command(name="export")
@click.option(
    "--target",
    type=click.Choice(["vscode", "claude", "skill"]),
    default="vscode",
    help="The program that reads the files.",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="The folder to write to. Default: this repository.",
)
@click.option("--check", is_flag=True, help="Write nothing; report what would be written.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def export_command(target: str, folder: Path | None, check: bool, as_json: bool) -> int:
    """Write the roles as files that other tools read.

    Exit code 1: a file that you wrote or edited was kept; with --check: a file is out of date.
    """
    from fairwitness.app.export.writer import export
    from fairwitness.app.repository import repository_root

    folder = folder or repository_root(Path.cwd())
    done = export(target, folder, check=check)
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(done), indent=2))
    else:
        for path in done.written:
            click.echo(f"{'outdated' if check else 'written':<10} {path}")
        for sentence in done.kept:
            click.echo(f"{'kept':<10} {sentence}")
        counts = f"{len(done.written)} {'outdated' if check else 'written'}, {len(done.unchanged)} unchanged"
        click.echo(f"{counts}, {len(done.kept)} kept", err=True)
        if check and done.written:
            click.echo(f"next:  fairwitness agents export --target {target} --dir {folder}", err=True)
    return ExitCode.GATE_SHUT if done.kept or (check and done.written) else ExitCode.REACHED


@command.command(name="try")
@click.argument("role")
@click.option("--agents", metavar="NAME", help="The agent to use instead of the configured one.")
@click.option("--instance", metavar="NAME", help="The instance of the role. Default: the first.")
@click.option(
    "--cassette",
    type=click.Path(path_type=Path),
    help="The recording to play with --agents cassette instead of the bundled one.",
)
@click.option("--record", type=click.Path(dir_okay=False, path_type=Path), help="Record the session to this file.")
@click.option("--keep", is_flag=True, help="Keep the folder of the trial.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def try_command(
    role: str,
    agents: str | None,
    instance: str | None,
    cassette: Path | None,
    record: Path | None,
    keep: bool,
    as_json: bool,
) -> int:
    """Let one agent play ROLE on a small bundled repository, and show what it did.

    Exit code 0: the answer is valid. 1: it is not, or the agent broke its limits. 3: no agent. 5: time or budget.
    """
    from fairwitness.app.agents.trial import TrialRequest, try_role

    request = TrialRequest(
        role=role,
        where=Path.cwd(),
        instance=instance,
        agents=agents,
        cassette=cassette,
        record=record,
        keep=keep,
    )
    with ProgressLine(quiet=as_json) as progress:
        progress("begin", role, agents or "the agent of the settings")
        tried = try_role(request, watcher=lambda happening: _watch(progress, happening))
    if as_json:
        click.echo(json.dumps(_plain(tried), indent=2, ensure_ascii=False))
    else:
        _print_tried(tried)
    return _exit_code(tried)


def _watch(progress: ProgressLine, happening: "Happening") -> None:
    """Print a line for each tool call and each refusal."""
    from fairwitness.app.text import safe_lines

    what = {"call": "calls", "denied": "refused", "note": "note:"}.get(happening.kind.value)
    if what is not None:
        line = next(safe_lines(f"{what} {happening.tool or ''} {happening.text or happening.args or ''}"))
        progress("note", "", line[:100])


def _plain(tried: "TrialResult") -> dict[str, Any]:
    return {
        "role": tried.role,
        "instance": tried.instance,
        "agent": tried.agent.plain(),
        "model": tried.model,
        "sandbox": tried.sandbox,
        "outcome": tried.outcome.plain(),
        "changed": [each.plain() for each in tried.changed],
        "byproducts": tried.byproducts,
        "kept": tried.kept,
        "recorded": tried.recorded,
    }


def _print_tried(tried: "TrialResult") -> None:
    outcome = tried.outcome
    version = f" {tried.agent.version}" if tried.agent.version else ""
    model = f", model {tried.model}" if tried.model else ""
    _say(f"{tried.role} ({tried.instance}) by {tried.agent.name}{version}{model}, sandbox {tried.sandbox}")
    times = {1: "once", 2: "twice"}.get(outcome.asked, f"{outcome.asked} times")
    _say(f"{outcome.status.value.upper()} after {spell_seconds(outcome.duration_ms / 1000)}, asked {times}")
    for problem in outcome.problems:
        _say(textwrap.fill(problem, _WIDTH, initial_indent="  - ", subsequent_indent="    "))
    usage = outcome.usage
    counts = {"in": usage.tokens_in, "out": usage.tokens_out, "cached": usage.tokens_cached}
    summary = ", ".join(f"{count} {name}" for name, count in counts.items() if count is not None) or "not reported"
    cost = f", {usage.cost_micros / 1_000_000:.4f} dollars" if usage.cost_micros is not None else ""
    _say(f"tokens     {summary}{cost} ({usage.source.value})")
    for each in tried.changed:
        _say(f"{each.change.value:<10} {each.path}{'' if each.allowed else '   NOT ALLOWED'}")
    for denial in outcome.denials:
        text = f"refused    {denial.tool} {denial.target}: {denial.reason} ({denial.layer.value})"
        _say(textwrap.fill(text, _WIDTH, subsequent_indent=" " * 11))
    if outcome.answer is not None:
        _say(json.dumps(outcome.answer, indent=2, ensure_ascii=False))
    elif outcome.raw_text:
        _say(f"it said:\n{outcome.raw_text[-2000:]}")
    if tried.recorded is not None:
        click.echo(
            f"next:  fairwitness agents try {tried.role} --agents cassette --cassette {tried.recorded}", err=True
        )
    elif tried.kept is not None:
        click.echo(f"next:  look into {tried.kept}", err=True)


def _say(text: str) -> None:
    """Print text of an agent with terminal control sequences made visible."""
    from fairwitness.app.text import safe_lines

    for line in safe_lines(text):
        click.echo(line)


def _exit_code(tried: "TrialResult") -> ExitCode:
    match tried.outcome.status.value:
        case "ok":
            return ExitCode.REACHED
        case "timed_out" | "over_budget":
            return ExitCode.BUDGET
        case "cancelled":
            return ExitCode.INTERRUPTED
        case "agent_error" if tried.outcome.cause == "not_found":
            return ExitCode.NOT_READY
        case _:
            return ExitCode.GATE_SHUT
