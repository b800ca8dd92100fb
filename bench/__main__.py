"""Runs every benchmark, or those named on the command line; leaves with 1 if a goal was missed."""

import sys

from bench import (
    agents,
    autopilot,
    autopilot_state,
    documents,
    engine,
    feature,
    git,
    ledger,
    resume,
    sandbox,
    scheduling,
    startup,
    store,
    verify,
)

BENCHMARKS = {
    "store": store.run,
    "documents": documents.run,
    "ledger": ledger.run,
    "startup": startup.run,
    "resume": resume.run,
    "sandbox": sandbox.run,
    "verify": verify.run,
    "agents": agents.run,
    "engine": engine.run,
    "git": git.run,
    "scheduling": scheduling.run,
    "feature": feature.run,
    "autopilot": autopilot.run,
    "autopilot_state": autopilot_state.run,
}


def main(names: list[str]) -> int:
    """Runs the benchmarks in order."""
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"bench: there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    met = [BENCHMARKS[name]() for name in names or BENCHMARKS]
    print("\nall goals met" if all(met) else "\nat least one goal was MISSED")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
