"""A process that writes one run into the ledger of a ground, to be killed on the way: TOP STATE KIND RUN."""

import sys
from contextlib import closing
from pathlib import Path

from ledger.tampering import Ground, add_run, go_on

if __name__ == "__main__":
    top, state, kind, run_id = sys.argv[1:]
    ground = Ground(Path(top), Path(state), kind)
    with closing(ground.open()) as ledger:
        if ledger.head(run_id).links:
            go_on(ground, ledger, run_id)
        else:
            add_run(ground, ledger, run_id)
