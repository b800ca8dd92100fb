"""Writes tests/costs.json from what `make costs` measured: seconds per case of each test function, if not cheap."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
MEASURED = ROOT / ".costs"
CHEAP = 0.2


def main() -> int:
    """Read the measurements of all test processes and replace the file."""
    costs: dict[str, float] = {}
    for path in MEASURED.glob("*.jsonl"):
        for line in path.read_text().splitlines():
            name, seconds = json.loads(line)
            costs[name] = max(costs.get(name, 0.0), seconds)
        path.unlink()
    if not costs:
        print("nothing was measured. Next: make costs", file=sys.stderr)
        return 1
    dear = {name: round(seconds, 1) for name, seconds in sorted(costs.items()) if seconds >= CHEAP}
    (ROOT / "tests" / "costs.json").write_text(json.dumps(dear, indent=0) + "\n")
    print(f"{len(costs)} test functions measured, {sum(costs.values()):.0f} s; {len(dear)} are not cheap")
    return 0


if __name__ == "__main__":
    sys.exit(main())
