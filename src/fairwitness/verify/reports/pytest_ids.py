"""Node ids of pytest, put together again from its JUnit report, which spells them with dots."""

from collections.abc import Iterable

_PARTS = 100
"""No class is nested deeper than this; a name that pretends to be is not taken apart."""


def _modules(file: str) -> tuple[str, ...]:
    """How pytest may spell a file: without its ending if that is `.py`, else whole."""
    dotted = file.replace("/", ".")
    return (dotted.removesuffix(".py"),) if dotted.endswith(".py") else (dotted,)


class PytestIds:
    """Knows the files of one report.

    A case names its class with dots and, in the older of its two formats, the file that the function was written in.
    That is the test's own file, unless the test was inherited or decorated elsewhere; then the other cases' files, or
    the case of the letters, tell where the module ends and the class begins.
    """

    def __init__(self, cases: Iterable[tuple[str, str]]) -> None:
        self._files: dict[str, str] = {}
        for classname, file in cases:
            for module in _modules(file) if file else ():
                if not classname or classname == module or classname.startswith(module + "."):
                    self._files[module] = file

    def node_id(self, classname: str, name: str, file: str) -> str:
        """The id that pytest itself would accept for a case."""
        if not file:  # the newer format leaves files out
            return f"{classname}::{name}" if classname else name
        if not classname:  # the file itself: it could not be collected, or was skipped as a whole
            return file if name in _modules(file) else name
        path, classes = self._split(classname)
        return "::".join((path, *classes, name))

    def _split(self, classname: str) -> tuple[str, list[str]]:
        parts = classname.split(".")
        if len(parts) > _PARTS:
            return classname, []
        for length in range(len(parts), 0, -1):
            known = self._files.get(".".join(parts[:length]))
            if known is not None:
                return known, parts[length:]
        # no case of that file says where it is: classes begin with a capital letter
        length = next((index for index, part in enumerate(parts) if index and part[:1].isupper()), len(parts))
        return "/".join(parts[:length]) + ".py", parts[length:]
