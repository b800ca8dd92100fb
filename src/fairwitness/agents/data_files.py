"""Reads the data of this package: one TOML file for each role and for each external agent."""

import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.problems import spell_path
from fairwitness.errors import UsageError
from fairwitness.rules.validation import problems_of

C = TypeVar("C", bound=Contract)


def read_files(folder: Path, contract: type[C], *, named_by: str) -> tuple[C, ...]:
    """Return the contract that each TOML file of a folder holds, in the order of the file names.

    A file bears the value of the field `named_by` as its name. `UsageError` names the first file that is wrong.
    """
    return tuple(_read(path, contract, named_by) for path in sorted(folder.glob("*.toml")))


def _read(path: Path, contract: type[C], named_by: str) -> C:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # neither UTF-8 nor TOML
        raise _refused(path, f"is not TOML: {error}") from None
    try:
        value = contract.model_validate(values)
    except ValidationError as error:
        first = problems_of(values, error.errors(include_url=False))[0]
        raise _refused(path, f"{spell_path(first.where)}: expected {first.expected}, found {first.found}") from None
    name = getattr(value, named_by)
    if name != path.stem:
        raise _refused(path, f"{named_by}: expected {path.stem}, as the file is called, found {name}")
    return value


def _refused(path: Path, problem: str) -> UsageError:
    where = f"{path.parent.name}/{path.name}"
    return UsageError(
        f"{where} {problem}", next_step="install Fair Witness again, or repair the file if you changed it"
    )
