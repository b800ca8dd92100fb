"""The conformance kit of engines: a new one is done when `check_engine` finds nothing wrong with it.

Each case gets a fresh database and goes through one process, opening and closing engines as often as it needs. What
happens to an engine whose process is killed needs processes of its own: the product's tests have them.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from support.engine import (
    cases_children,
    cases_gates,
    cases_keys,
    cases_resume,
    cases_runs,
    cases_steps,
    cases_values,
    cases_workers,
)
from support.engine.case import Broken, Case, Make

CASES = (
    *cases_steps.CASES,
    *cases_keys.CASES,
    *cases_gates.CASES,
    *cases_runs.CASES,
    *cases_children.CASES,
    *cases_resume.CASES,
    *cases_workers.CASES,
    *cases_values.CASES,
)
BY_NAME = {case.name: case for case in CASES}

_CASE_S = 60.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one case."""

    case: str
    problem: str
    """Empty if the engine kept its promise."""


async def check_engine(fresh: Callable[[str], Make], cases: Iterable[Case] = CASES) -> list[Verdict]:
    """Puts an engine to every case; `fresh` gives the maker of engines on a new database, by the name of the case."""
    verdicts = []
    for case in cases:
        try:
            async with asyncio.timeout(_CASE_S):
                await case.check(fresh(case.name))
        except Broken as broken:
            verdicts.append(Verdict(case.name, str(broken)))
        except TimeoutError:
            verdicts.append(Verdict(case.name, f"not over within {_CASE_S:g} s"))
        except Exception as error:  # noqa: BLE001  # an engine that raises what it should not has a problem too
            verdicts.append(Verdict(case.name, f"{type(error).__name__}: {error}"))
        else:
            verdicts.append(Verdict(case.name, ""))
    return verdicts
