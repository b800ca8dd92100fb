"""`fairwitness replay`: repeats the decisions of a run from its recorded facts."""

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairwitness.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from fairwitness.app.runs.replay import Replayed

_SETTINGS = {"help_option_names": ["-h", "--help"]}
_SHOWN = 160


@click.command(name="replay", context_settings=_SETTINGS)
@click.argument("run", required=False)
@click.option("--file", type=click.Path(dir_okay=False, path_type=Path), help="An exported verification-ledger.db.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def command(run: str | None, file: Path | None, as_json: bool) -> int:
    """Repeat every decision of RUN (default: the latest feature run) from the recorded facts.

    Exit code 6 if a decision differs, or if the recorded events do not follow from it.
    """
    from fairwitness.app.repository import repository_root
    from fairwitness.app.runs.replay import replay_file, replay_in

    if file is not None:
        run_id, replayed = replay_file(file, run)
    else:
        run_id, replayed = replay_in(repository_root(Path.cwd()), run or "last")
    flipped = [decision for decision in replayed if decision.flips]
    if as_json:
        click.echo(json.dumps([dataclasses.asdict(decision) for decision in replayed], indent=2, ensure_ascii=False))
    else:
        for decision in replayed:
            for line in _lines(decision):
                click.echo(line)
        click.echo(_verdict(run_id, len(replayed), flipped), err=True)
    return ExitCode.UNTRUSTED if flipped else ExitCode.REACHED


def _lines(decision: "Replayed") -> list[str]:
    summary = [f"{decision.number:>4}  {decision.kind:<10} {decision.reason}"]
    if decision.flips:
        summary.append(f"      FLIPPED at {decision.step or 'the beginning'}")
        summary.append(f"      stood:  {decision.kind}: {decision.reason}")
        summary.append(f"      now:    {decision.now_kind}: {decision.now_reason}")
        summary += [f"      {flip.what}: {_short(flip.stood)} -> {_short(flip.now)}" for flip in decision.flips]
    return summary


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _verdict(run_id: str, total: int, flipped: list["Replayed"]) -> str:
    if not flipped:
        return f"{total} decision{'' if total == 1 else 's'} of {run_id}, all as they were taken"
    numbers = ", ".join(str(decision.number) for decision in flipped)
    return f"{len(flipped)} of {total} decisions would not be taken so now: {numbers}\nnext:  fairwitness ledger verify"
