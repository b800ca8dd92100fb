"""Reads files about agents: one TOML file for each role, external agent and price, and one Markdown file for a prompt.

Those of this package come first; of prices it has none. A person adds or replaces them in the folders of the user
configuration. A repository adds none.
"""

import tomllib
from pathlib import Path
from typing import Any, TypeVar

import platformdirs
from pydantic import ValidationError

from fairwitness.contracts.agents.settings import ModelPrice, PriceFile
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.problems import spell_path
from fairwitness.errors import UsageError
from fairwitness.kit.text import visible
from fairwitness.rules.problem_words import problems_of

C = TypeVar("C", bound=Contract)


ROLES, AGENTS, PROMPTS, PRICES = "roles", "agents", "prompts", "prices"
"""The folders of the user configuration."""


def user_folder(kind: str) -> Path:
    """Return the folder in which a person keeps own files of a kind; it need not exist."""
    return platformdirs.user_config_path("fairwitness", appauthor=False) / kind


def read_tables(folder: Path) -> tuple[tuple[Path, dict[str, Any]], ...]:
    """Return each TOML file of a person's folder with its values, in the order of the file names."""
    return tuple((path, _values(path)) for path in sorted(folder.glob("*.toml")))


def own_prices() -> dict[str, ModelPrice]:
    """Return the prices that a person wrote into files of the user configuration, by model."""
    found = [checked(path, values, PriceFile, None) for path, values in read_tables(user_folder(PRICES))]
    return {price.model: price for price in found}


def read_files(folder: Path, contract: type[C], *, named_by: str) -> tuple[C, ...]:
    """Return the contract that each TOML file of a folder holds, in the order of the file names.

    A file bears the value of the field `named_by` as its name. `UsageError` names the first file that is wrong.
    """
    return tuple(_read(path, contract, named_by) for path in sorted(folder.glob("*.toml")))


def _read(path: Path, contract: type[C], named_by: str) -> C:
    return checked(path, _values(path), contract, named_by)


def _values(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # neither UTF-8 nor TOML
        raise refused(path, f"is not TOML: {error}") from None
    except OSError as error:
        raise refused(path, f"cannot be read: {error.strerror}") from None


def checked(path: Path, values: dict[str, Any], contract: type[C], named_by: str | None) -> C:
    """Return the contract of a file's values; `UsageError` names the file and the first value that is wrong."""
    try:
        value = contract.model_validate(values)
    except ValidationError as error:
        first = problems_of(values, error.errors(include_url=False))[0]
        raise refused(path, f"{spell_path(first.where)}: expected {first.expected}, found {first.found}") from None
    name = path.stem if named_by is None else getattr(value, named_by)
    if name != path.stem:
        raise refused(path, f"{named_by}: expected {path.stem}, as the file is called, found {name}")
    return value


def refused(path: Path, problem: str) -> UsageError:
    """Return the refusal of a file: of this package by its short name, of a person by its whole path."""
    if not path.is_relative_to(user_folder("")):
        where = f"{path.parent.name}/{path.name}"
        return UsageError(
            f"{where} {problem}", next_step="install Fair Witness again, or repair the file if you changed it"
        )
    return UsageError(f"{visible(str(path))} {visible(problem)}", next_step="repair the file, or remove it")
