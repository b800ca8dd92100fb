"""What a Python project declares is read from its files, whatever form they have; nothing of it is run."""

import pytest

from fairwitness.verify.environment.project_metadata import ProjectMetadata, is_own, read_metadata
from fairwitness.verify.environment.requirements import DeclaredRequirements, declared_by, join, locked_versions, unmet
from verify.discovery.tree_files import MappingFiles

MARKERS = {"python_full_version": "3.11.7", "python_version": "3.11", "sys_platform": "linux", "os_name": "posix"}


def read(files: dict[str, str], root: str = ".") -> DeclaredRequirements:
    """What a project declares."""
    return declared_by(root, MappingFiles({path: text.encode() for path, text in files.items()}))


def test_dependencies_and_the_usual_groups_are_taken_together() -> None:
    text = """
[project]
name = "shop"
requires-python = ">=3.9"
dependencies = ["httpx>=0.27"]
[project.optional-dependencies]
Dev = ["shop[fast]", "ruff"]
fast = ["orjson"]
docs = ["sphinx"]
[dependency-groups]
test = ["pytest", {include-group = "types"}]
types = ["mypy"]
release = ["twine"]
"""
    declared = read({"pyproject.toml": text})
    assert declared.requirements == ["httpx>=0.27", "ruff", "orjson", "pytest", "mypy"]
    assert (declared.extras, declared.groups, declared.requires_python) == (["Dev", "fast"], ["test"], ">=3.9")
    assert declared.problem is None


def test_requirement_files_are_followed_and_the_project_itself_left_out() -> None:
    files = {
        "requirements.txt": "-r requirements/base.txt\n-e .\n./libs/own\n--index-url https://example/simple\nattrs\n",
        "requirements/base.txt": "idna == 3.1 \\\n  --hash=sha256:aa \\\n  --hash=sha256:bb  # why\n-c ../limits.txt\n",
        "limits.txt": "attrs<30\n",
        "dev-requirements.txt": "pytest # tests\n",
        "requirements-docs.txt": "sphinx\n",
        "other/requirements.txt": "numpy\n",
    }
    declared = read(files)
    assert sorted(declared.requirements) == ["attrs", "idna==3.1 --hash=sha256:aa --hash=sha256:bb", "pytest"]
    assert declared.constraints == ["attrs<30"]
    assert declared.indexes == ["https://example/simple"]
    assert set(declared.read) == {"dev-requirements.txt", "requirements.txt", "requirements/base.txt", "limits.txt"}


@pytest.mark.parametrize(
    ("names", "read_first"),
    [
        (["requirements.txt", "requirements-dev.txt"], ["requirements.txt", "requirements-dev.txt"]),
        (["requirements/tests.txt", "requirements/tests37.txt", "requirements/dev.txt"], ["requirements/tests.txt"]),
        (["dev-requirements.txt", "test_requirements.txt", "notes.txt"], ["test_requirements.txt"]),
        (["requirements/base.txt", "requirements.docs.txt"], ["requirements/base.txt"]),
        (["sub/requirements.txt", "requirements.in"], []),
    ],
)
def test_only_files_for_running_and_testing_are_read(names: list[str], read_first: list[str]) -> None:
    assert sorted(read(dict.fromkeys(names, "six\n")).read) == sorted(read_first)


def test_setup_cfg_is_read_where_it_says_something() -> None:
    text = (
        "[metadata]\nname = shop\n[options]\npython_requires = >=3.8\ninstall_requires =\n    six  # old\n    file: x\n"
    )
    text += "[options.extras_require]\ntest =\n    pytest\n"
    declared = read({"api/setup.cfg": text}, "api")
    assert (declared.requirements, declared.requires_python) == (["six", "pytest"], ">=3.8")


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"pyproject.toml": "[project"}, "pyproject.toml cannot be read: "),
        ({"pyproject.toml": '[project]\nname = "x"\ndependencies = ["?"]\n'}, "pyproject.toml asks for '?'"),
        (
            {"requirements.txt": "six --hash=sha256:aa --pre\n"},
            "requirements.txt gives six options that are not supported",
        ),
        ({"pyproject.toml": '[project]\nname = "x"\ndependencies = ["six\\n--pre"]\n'}, "pyproject.toml asks for "),
        ({"requirements.txt": "-r ../outside.txt\n"}, "../../outside.txt is named by a requirements file"),
        ({"setup.cfg": "no section\n"}, "setup.cfg cannot be read: "),
        (
            {"pyproject.toml": "[tool.poetry]\nname = 'x'\n"},
            "pyproject.toml declares its dependencies for Poetry alone",
        ),
    ],
)
def test_what_cannot_be_read_is_said(files: dict[str, str], problem: str) -> None:
    said = read(files).problem
    assert said is not None
    assert said.startswith(problem)


def test_files_that_name_each_other_are_read_once() -> None:
    assert read({"requirements.txt": "-r requirements.txt\nsix\n"}).requirements == ["six"]


def test_only_what_applies_to_the_interpreter_can_be_missing() -> None:
    lines = ["tomli; python_version < '3.11'", "six>=1.16", "attrs==25.*", "absent[extra]>2; sys_platform == 'linux'"]
    declared = DeclaredRequirements(requirements=lines, constraints=["idna<4", "gone<2"], requires_python=">=3.12")
    found = unmet(declared, {"six": "1.16.0", "attrs": "24.1", "idna": "4.0"}, MARKERS)
    assert found == ["Python >=3.12", "attrs==25.*", "absent[extra]>2", "idna<4"]
    assert unmet(DeclaredRequirements(requires_python="rubbish"), {}, MARKERS) == ["Python rubbish"]


def test_a_lock_names_versions_but_not_of_the_repositorys_own() -> None:
    lock = 'version = 1\n[[package]]\nname = "A.b"\nversion = "1"\n[[package]]\nname = "a-b"\nversion = "2"\n'
    lock += '[[package]]\nname = "evil"\nversion = "1\\n--pre"\n'
    lock += '[[package]]\nname = "shop"\nversion = "1.2"\nsource = { editable = "." }\n'
    assert locked_versions("api", MappingFiles({"uv.lock": lock.encode()})) == {"a-b": {"1", "2"}}
    assert locked_versions(".", MappingFiles({"uv.lock": b"["})) == {}


@pytest.mark.parametrize(
    ("folder", "name", "path"),
    [
        (".", "a", "a"),
        ("api", "a", "api/a"),
        ("api/x", "../b", "api/b"),
        (".", "../b", "../../b"),
        ("api", "./b/../c", "api/c"),
    ],
)
def test_paths_are_joined_inside_the_tree(folder: str, name: str, path: str) -> None:
    assert join(folder, name) == path


def said_of(files: dict[str, str]) -> ProjectMetadata:
    """What a project's files say of it."""
    return read_metadata(".", MappingFiles({path: text.encode() for path, text in files.items()}))


def test_name_version_and_entry_points_are_taken_from_the_manifest() -> None:
    text = '[project]\nname = "My.Shop"\nversion = "1.2"\n[project.scripts]\nshop = "shop:main"\n'
    text += '[project.entry-points.pytest11]\nshop = "shop.plugin"\nbad = "x\\ny"\n'
    said = said_of({"pyproject.toml": text})
    assert (said.name, said.version) == ("My.Shop", "1.2")
    assert said.entry_points == {"console_scripts": {"shop": "shop:main"}, "pytest11": {"shop": "shop.plugin"}}
    assert is_own("my_shop", said)
    assert not is_own("other", said)
    assert not is_own("-", ProjectMetadata())


@pytest.mark.parametrize(
    ("tool", "file", "content"),
    [
        ('[tool.hatch.version]\npath = "src/shop/v.py"', "src/shop/v.py", '__version__ = "3.1"\n'),
        (
            '[tool.setuptools.dynamic]\nversion = {attr = "shop.about.__version__"}',
            "src/shop/about.py",
            "__version__ = '3.1'\n",
        ),
        ('[tool.setuptools.dynamic]\nversion = {file = "VERSION"}', "VERSION", "3.1\n"),
        ("", "shop/__init__.py", '__version__: str = "3.1"\n'),
    ],
)
def test_a_version_kept_in_the_code_is_found_there(tool: str, file: str, content: str) -> None:
    manifest = f'[project]\nname = "shop"\ndynamic = ["version"]\n{tool}\n'
    said = said_of({"pyproject.toml": manifest, file: content})
    assert (said.version, said.read[-1]) == ("3.1", file)


def test_a_version_that_nothing_says_is_none_that_anybody_asks_for() -> None:
    assert said_of({"pyproject.toml": '[project]\nname = "shop"\n'}).version == "0"
    assert said_of(
        {"setup.cfg": "[metadata]\nname = shop\nversion = 2\n[options.entry_points]\nconsole_scripts =\n  a = b:c\n"}
    ) == ProjectMetadata("shop", "2", {"console_scripts": {"a": "b:c"}})
    assert said_of({}) == ProjectMetadata()
