"""Plays every script and keeps what came of it: `PYTHONPATH=tests python -m feature.keep`. Then look at the diff."""

import tempfile
from pathlib import Path

from feature.keeping import Kept, kept_of, write_all
from feature.paper_scripts import SCRIPTS
from support.paper.run import Ground, PaperRun


def main() -> None:
    """Whatever stood there before is replaced."""
    runs: dict[str, Kept] = {}
    with tempfile.TemporaryDirectory() as folder:
        ground = Ground.lay(Path(folder) / "ground")
        for name, script in SCRIPTS.items():
            run = PaperRun(ground, Path(folder) / name, script)
            try:
                run.play()
                runs[name] = kept_of(run.context)
            finally:
                run.close()
    write_all(runs)


if __name__ == "__main__":
    main()
