"""The type checker of this repository, as far as the standard library goes. Usage: check_types.py PACKAGE

Every function says what it takes and gives, every annotation names something that exists, and every call of one of the
package's own functions or classes fits its signature.
"""

import ast
import importlib
import inspect
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def unsaid(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Functions that leave a type out."""
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            silent = [each.arg for each in given if each.annotation is None and each.arg not in ("self", "cls")]
            if silent or node.returns is None:
                yield node.lineno, f"{node.name} does not say its types: {', '.join(silent) or 'what it gives'}"


def unknown(module: ModuleType) -> Iterator[tuple[int, str]]:
    """Annotations that name nothing."""
    for name, thing in vars(module).items():
        if getattr(thing, "__module__", None) == module.__name__ and (inspect.isclass(thing) or callable(thing)):
            try:
                typing.get_type_hints(thing)
            except (NameError, AttributeError) as error:
                yield inspect.getsourcelines(thing)[1], f"{name}: {error}"


def misfits(tree: ast.Module, module: ModuleType, package: str) -> Iterator[tuple[int, str]]:
    """Calls that do not fit what is called."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        called = vars(module).get(node.func.id)
        starred = any(isinstance(each, ast.Starred) for each in node.args)
        starred = starred or any(each.arg is None for each in node.keywords)
        if starred or not str(getattr(called, "__module__", "")).startswith(package):
            continue
        try:
            inspect.signature(called).bind(*node.args, **{each.arg: each for each in node.keywords})
        except ValueError:
            continue  # built in: Python does not say what it takes
        except TypeError as error:
            yield node.lineno, f"this call of {node.func.id} does not fit: {error}"


def main() -> int:
    """Prints the problems of every module; 1 if there are any."""
    package, count = sys.argv[1], 0
    sys.path.insert(0, str(Path.cwd()))
    for path in sorted(Path(package).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        module = importlib.import_module(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
        for line, text in sorted((*unsaid(tree), *unknown(module), *misfits(tree, module, package))):
            count += 1
            print(f"{path.as_posix()}:{line}:1: error: {text}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
