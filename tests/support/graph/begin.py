"""Records a run whose plan is approved from the start, as no command does."""

from collections.abc import Mapping
from pathlib import Path

from fairwitness.app.settings.verify import verify_settings
from fairwitness.app.state import ledger_in, state_of
from fairwitness.contracts.forge.dag import Dag
from fairwitness.contracts.graph.orders import GraphOptions
from fairwitness.contracts.verify.run_settings import RunSettings
from fairwitness.git.identity import read_identity
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.runs.graph.log import GraphLog


def begin_graph(
    where: Path,
    dag: Dag,
    documents: Mapping[str, str],
    *,
    request: str,
    base: str = "HEAD",
    options: GraphOptions | None = None,
    agents: str | None = None,
    cassettes: Path | None = None,
    clock: Clock = system_clock,
) -> GraphOptions:
    """Record a new run with an approved plan, which an engine can then execute.

    The settings are read here once and apply to the whole run.
    """
    repository = Repository.open(where)
    chosen = options or GraphOptions(target=f"fairwitness/{dag.runId.replace(':', '-')}/target")
    settings, digest = verify_settings(repository.top)
    identity = read_identity(repository)
    said = RunSettings(
        verify=settings,
        settings_hash=f"sha256:{digest}",
        agents=agents,
        cassettes=None if cassettes is None else str(cassettes.absolute()),
    )
    ledger = ledger_in(state_of(repository), repository, clock=clock)
    try:
        GraphLog(ledger, dag.runId, clock=clock).begin(
            dag,
            chosen,
            base_commit=repository.commit(base),
            documents=documents,
            settings=said.plain(),
            request=request,
            repo_url=(repository.top or repository.common_dir).as_uri(),
            model=agents or "as configured",
            actor=identity.author,
        )
    finally:
        ledger.close()
    return chosen
