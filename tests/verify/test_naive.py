"""The samples are what they say: bases are green, and so does every lie look to whoever believes exit codes."""

from pathlib import Path

import pytest

from verify.samples import SAMPLES, SUFFIX, Sample, cases, samples
from verify.samples import export as exported
from verify.toolchains import installed, require, run

LIES = {
    "test deleted",
    "assertion weakened",
    "skip added",
    "conftest that forges",
    "exit-0 wrapper",
    "config that ignores",
    "hard-coded result",
    "vacuous new test",
    "lint disabled in file",
    "report forged",
    "tests narrowed by configuration",
    "broken code with the test adapted",
}

each_sample = pytest.mark.parametrize("sample", samples(), ids=lambda sample: str(sample.name))


def _changes(*, honest: bool) -> list[object]:
    return [
        pytest.param(sample, name, red, id=f"{sample.name}-{name}", marks=marks)
        for sample, name, red, marks in cases(honest=honest)
        if not red or sample.changes[name].bases == ("red",)
    ]


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fetched packages, kept for all tests of this run."""
    return tmp_path_factory.mktemp("packages")


def _complaints(sample: Sample, tree: dict[str, bytes], folder: Path, packages: Path) -> list[str]:
    """What the project's own commands complain about; empty when all leave with 0."""
    require(sample)
    project = exported(tree, folder / "project")
    modules = installed(sample, packages)
    if modules is not None:
        (project / "node_modules").symlink_to(modules)
    caches = {"MYPY_CACHE_DIR": str(packages / "mypy"), "CARGO_TARGET_DIR": str(folder / "target")}
    runs = [(argv, run(sample, argv, project, **caches)) for argv in sample.naive]
    return [f"{' '.join(argv)}\n{done.stdout}{done.stderr}" for argv, done in runs if done.returncode]


def test_there_are_ten_samples_of_the_named_kinds() -> None:
    kinds = [sample.name.partition("-")[0] for sample in samples()]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "py": 4, "node": 2, "ts": 1, "rust": 1, "c": 1, "cpp": 1,
    }  # fmt: skip


@each_sample
def test_a_sample_has_an_honest_change_and_three_lies(sample: Sample) -> None:
    honest = [change for change in sample.changes.values() if change.honest]
    assert len(honest) >= 1
    assert len(sample.changes) - len(honest) >= 3


def test_every_known_lie_is_told_somewhere() -> None:
    assert {lie for sample in samples() for change in sample.changes.values() for lie in change.lies} == LIES


def test_no_tool_of_ours_takes_a_sample_for_our_own_file() -> None:
    plain = [path for path in SAMPLES.rglob("*") if path.is_file() and path.suffix != SUFFIX]
    assert {path.name for path in plain} == {"sample.toml"}


def test_no_folder_of_a_change_is_left_over() -> None:
    for sample in samples():
        folders = {path.name for path in (SAMPLES / sample.name / "changes").glob("*")}
        assert folders <= {*sample.changes, "_red"}


@each_sample
def test_every_change_changes_something_also_on_the_red_base(sample: Sample) -> None:
    assert sample.tree(red=True) != sample.tree()
    for name, red in sample.proposals():
        assert sample.tree(name, red=red) != sample.tree(red=red)


@each_sample
def test_the_base_is_green_to_the_naive_command(sample: Sample, tmp_path: Path, packages: Path) -> None:
    assert _complaints(sample, sample.tree(), tmp_path, packages) == []


@each_sample
def test_the_red_base_is_red_to_the_naive_command(sample: Sample, tmp_path: Path, packages: Path) -> None:
    assert len(_complaints(sample, sample.tree(red=True), tmp_path, packages)) == 1


@pytest.mark.parametrize(("sample", "name", "red"), _changes(honest=True))
def test_an_honest_change_is_green_to_the_naive_command(
    sample: Sample, name: str, red: bool, tmp_path: Path, packages: Path
) -> None:
    assert _complaints(sample, sample.tree(name, red=red), tmp_path, packages) == []


@pytest.mark.parametrize(("sample", "name", "red"), _changes(honest=False))
def test_the_lie_looks_green_to_the_naive_command(
    sample: Sample, name: str, red: bool, tmp_path: Path, packages: Path
) -> None:
    assert _complaints(sample, sample.tree(name, red=red), tmp_path, packages) == []
