"""Writes tests/costs.json from what `make costs` measured, if it is not cheap.

These are the seconds per case of each test function, and of the fixtures that the tests of a file share.
"""

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
            spent = costs.get(name, 0.0)
            costs[name] = max(spent, seconds) if "::" in name else spent + seconds  # a file has several fixtures
        path.unlink()
    if not costs:
        print("nothing was measured. Next: make costs", file=sys.stderr)
        return 1
    dear = {name: round(seconds, 1) for name, seconds in sorted(costs.items()) if seconds >= CHEAP}
    (ROOT / "tests" / "costs.json").write_text(json.dumps(dear, indent=0) + "\n")
    functions = sum("::" in name for name in costs)
    print(f"{functions} test functions measured, {sum(costs.values()):.0f} s; {len(dear)} costs are kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
