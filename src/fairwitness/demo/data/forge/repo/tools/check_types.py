"""The type checker of this repository: every function says what it takes and gives. Usage: check_types.py PACKAGE"""

import ast
import sys
from pathlib import Path


def main() -> int:
    """Prints every function that leaves a type out; 1 if there are any."""
    count = 0
    for path in sorted(Path(sys.argv[1]).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                if node.returns is None or any(each.annotation is None for each in node.args.args):
                    count += 1
                    print(f"{path.as_posix()}:{node.lineno}:1: error: {node.name} does not say its types")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
