"""`fairwitness verify`: proves a change by running its checks before and after; needs no model and no set-up."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairwitness.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from fairwitness.contracts.verify.report import VerifyReport


@click.command(name="verify", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--base", metavar="REF", help="The commit to compare with. Default: where the branch began.")
@click.option("--head", metavar="REF", help="The change. Default: HEAD.")
@click.option("--staged", is_flag=True, help="Verify the staged changes.")
@click.option("--worktree", is_flag=True, help="Verify the working tree, committed or not.")
@click.option(
    "--plan",
    type=click.Path(exists=False, dir_okay=False, path_type=Path),
    help="Allow only changes to files that this plan declares.",
)
@click.option(
    "--accept", "accepted", multiple=True, metavar="PATH|TESTID", help="Allow a test or oracle file to change."
)
@click.option("--reason", metavar="TEXT", help="Why --accept is right; it is recorded.")
@click.option(
    "--oracle",
    type=click.Choice(["base", "strict"]),
    help="base: a test may change if its old form passes. strict: a person accepts every weakened test.",
)
@click.option("--strict", is_flag=True, help="Block on supporting checks without evidence as well.")
@click.option("--no-cache", is_flag=True, help="Run every check, even if the ledger holds its result.")
@click.option("--setup-network", is_flag=True, help="Allow network access while an environment is prepared.")
@click.option(
    "--tier",
    type=click.Choice(["ns", "ll", "uid", "none"]),
    help="The sandbox to use instead of the strongest; results of `none` open no gate.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--sarif", type=click.Path(dir_okay=False, path_type=Path), help="Write findings as SARIF 2.1.0.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write checks as JUnit XML.")
@click.option("--report", "reports", multiple=True, metavar="FORMAT=FILE", help="Write another kind of report.")
@click.option("--github", is_flag=True, help="Print annotations and a summary for GitHub Actions.")
@click.option("--quiet", is_flag=True, help="Print no progress.")
def command(
    base: str | None,
    head: str | None,
    staged: bool,
    worktree: bool,
    plan: Path | None,
    accepted: tuple[str, ...],
    reason: str | None,
    oracle: str | None,
    strict: bool,
    no_cache: bool,
    setup_network: bool,
    tier: str | None,
    as_json: bool,
    sarif: Path | None,
    junit: Path | None,
    reports: tuple[str, ...],
    github: bool,
    quiet: bool,
) -> int:
    """Run the checks of this repository before and after a change, and decide whether the change holds.

    Exit code 0: it holds. 1: it does not, or evidence is missing. 4: a test expects something
    else now, which a person has to accept. Your files, index, branches and tags are not
    touched; the head of the run is kept in a ref under refs/fairwitness/.
    """
    if bool(accepted) is not bool(reason):
        raise click.UsageError("--accept and --reason go together: what is accepted, and why")
    if not all(format_ and file for format_, _, file in (one.partition("=") for one in reports)):
        raise click.UsageError("--report wants FORMAT=FILE")
    from fairwitness.app.verification.run import VerifyRequest, accepts_of, verify
    from fairwitness.cli.screens.progress import ProgressLine
    from fairwitness.contracts.common.evidence import SandboxTier
    from fairwitness.contracts.verify.checks import OracleMode

    request = VerifyRequest(
        where=Path.cwd(),
        base=base,
        head=head,
        staged=staged,
        worktree=worktree,
        plan=plan,
        accepts=accepts_of(accepted, reason or ""),
        oracle=OracleMode(oracle) if oracle else None,
        strict=strict,
        use_cache=not no_cache,
        setup_network=setup_network,
        tier=SandboxTier(tier) if tier else None,
    )
    with ProgressLine(quiet=quiet) as progress:
        report = verify(request, on_progress=lambda step: progress(*step))
    _write_files(report, sarif, junit)
    for one in reports:
        from fairwitness.app.repository import repository_root
        from fairwitness.app.verification.formats import write_report

        format_, _, file = one.partition("=")
        write_report(report, format_, Path(file), repository=repository_root(Path.cwd()))
    if as_json:
        click.echo(json.dumps(report.plain(), indent=2, ensure_ascii=False))
    elif github:
        from fairwitness.app.verification.formats import annotations, write_summary

        click.echo(annotations(report), nl=False)
        write_summary(report)
    else:
        from fairwitness.cli.screens.verify import show

        show(report)
    if report.answer.answer == "open":
        return ExitCode.REACHED
    return ExitCode.WAITS_FOR_PERSON if report.answer.needs_person else ExitCode.GATE_SHUT


def _write_files(report: "VerifyReport", sarif: Path | None, junit: Path | None) -> None:
    if sarif is not None:
        from fairwitness.app.verification.formats import write_sarif

        write_sarif(report, sarif)
    if junit is not None:
        from fairwitness.app.verification.formats import write_junit

        write_junit(report, junit)
