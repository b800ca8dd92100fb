"""What a person says in fairwitness.toml: checks of their own, others put in their place, some switched off but seen."""  # noqa: E501

import pytest

from fairwitness.contracts.verify.checks import LONG_S, QUICK_S, DeclaredCheck, Language, ReportFormat, VerifySettings
from fairwitness.verify.discovery.repository_checks import apply_settings
from verify.discovery.repository import check_of, look, offers, reasons

PYTEST = {"pyproject.toml": "[tool.pytest.ini_options]\n[tool.ruff]\n"}


@pytest.mark.req("X5")
def test_a_declared_check_is_added_and_required() -> None:
    found = look({}, VerifySettings(check=(DeclaredCheck(name="tests", argv=("./run-tests",)),)))
    check = check_of(found, "tests")
    assert (check.required, check.report, check.language) == (True, ReportFormat.EXIT, Language.OTHER)
    assert (check.tool, check.found_in, check.timeout_s) == ("run-tests", "fairwitness.toml", LONG_S)


def test_a_declared_check_stands_in_for_the_one_of_the_same_id() -> None:
    declared = DeclaredCheck(id="pytest", name="tests", argv=("{python}", "-m", "pytest", "tests/unit"))
    found = look(PYTEST, VerifySettings(check=(declared,)))
    check = check_of(found, "pytest")
    assert check.argv == declared.argv
    assert (check.tool, check.language) == ("pytest", Language.PYTHON)
    assert set(offers(found)) == {"pytest", "ruff"}


def test_a_declared_check_stands_in_for_what_could_not_be_read() -> None:
    declared = DeclaredCheck(id="package.json", name="tests", argv=("npm", "test"))
    found = look({"package.json": "{"}, VerifySettings(check=(declared,)))
    assert set(offers(found)) == {"package.json"}
    assert found.undiscovered == ()


@pytest.mark.req("X5")
def test_a_declared_check_without_an_id_replaces_nothing() -> None:
    declared = DeclaredCheck(name="lint", argv=("true",))
    found = look({"package.json": '{"scripts": {"lint": "standard"}}'}, VerifySettings(check=(declared,)))
    assert offers(look({}, VerifySettings(check=(declared,)))).keys() == {"lint"}
    once = DeclaredCheck(id="lint", name="lint", argv=("false",))
    discovered = look({}, VerifySettings(check=(once,)))
    both = apply_settings(discovered, VerifySettings(check=(declared,)))
    assert {check.id: check.argv for check in both.checks} == {"lint": ("false",), "lint-declared": ("true",)}
    assert "lint" in offers(found)


def test_tier_and_time_follow_from_the_name_unless_they_are_said() -> None:
    smoke = DeclaredCheck(name="smoke-execution", argv=("{python}", "-m", "pkg", "--help"))
    watched = DeclaredCheck(name="readiness-observability", argv=("./probe",), timeout_s=5, root="api")
    found = look({}, VerifySettings(check=(smoke, watched)))
    assert (check_of(found, "smoke-execution").tier, check_of(found, "smoke-execution").timeout_s) == (3, QUICK_S)
    probe = check_of(found, "api/readiness-observability")
    assert (probe.tier, probe.timeout_s, probe.root) == (4, 5, "api")


def test_a_declared_check_runs_in_its_projects_environment() -> None:
    node = DeclaredCheck(name="lint", argv=("{node_modules}/.bin/biome", "ci"))
    make = DeclaredCheck(name="build", argv=("make",))
    found = look(PYTEST, VerifySettings(check=(node, make)))
    assert check_of(found, "lint").language is Language.NODE
    assert check_of(found, "build").language is Language.PYTHON


def test_a_check_that_is_switched_off_is_still_seen() -> None:
    found = look(PYTEST, VerifySettings(disable=("pytest", "nobody")))
    assert set(offers(found)) == {"ruff"}
    (told,) = found.undiscovered
    assert (told.id, told.name, told.required, told.reason) == (
        "pytest",
        "tests",
        False,
        "switched off in fairwitness.toml",
    )


def test_what_cannot_be_run_may_be_switched_off_too() -> None:
    found = look({"package.json": "{"}, VerifySettings(disable=("package.json",)))
    (told,) = found.undiscovered
    assert not told.required
    assert reasons(found)["package.json"].endswith("(switched off in fairwitness.toml)")


def test_nothing_found_is_nothing_offered() -> None:
    found = look({"README.md": "", "data/x.csv": ""})
    assert (found.projects, found.checks, found.undiscovered) == ((), (), ())
