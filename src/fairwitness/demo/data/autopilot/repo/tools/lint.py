"""The linter of this repository: what reviewers are tired of saying. Usage: lint.py FOLDER..."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

LENGTH = 120


def problems(text: str) -> Iterator[tuple[int, str]]:
    """Each problem of a file with its line."""
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > LENGTH:
            yield number, f"longer than {LENGTH} characters"
        if line != line.rstrip() or "\t" in line:
            yield number, "a tab, or space at the end"
    tree = ast.parse(text)
    if ast.get_docstring(tree) is None:
        yield 1, "the module does not say what lives in it"
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in node.names:
                if (name.asname or name.name).split(".")[0] not in used:
                    yield node.lineno, f"{name.name} is imported and not used"
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            yield node.lineno, "a bare except hides mistakes"
        if isinstance(node, ast.FunctionDef):
            defaults = (*node.args.defaults, *node.args.kw_defaults)
            if any(isinstance(default, ast.List | ast.Dict | ast.Set) for default in defaults):
                yield node.lineno, f"a default of {node.name} is shared by all its calls"


def main() -> int:
    """Prints the problems of every file; 1 if there are any."""
    count = 0
    for path in sorted(path for folder in sys.argv[1:] for path in Path(folder).rglob("*.py")):
        for line, text in sorted(problems(path.read_text(encoding="utf-8"))):
            count += 1
            print(f"{path.as_posix()}:{line}:1: error: {text}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
