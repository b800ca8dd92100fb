"""The files of a tree: a folder or a mapping, read without following anything out of it."""

import os
from pathlib import Path

import pytest

from fairwitness.contracts.verify.checks import VerifySettings
from fairwitness.verify.discovery.files import READ_LIMIT, FolderFiles, MappingFiles, TreeFiles
from fairwitness.verify.discovery.repository_checks import discover


def test_a_folder_and_a_mapping_say_the_same(tmp_path: Path) -> None:
    contents = {
        "pyproject.toml": b"[tool.ruff]\n",
        "src/pkg/__init__.py": b"",
        "tests/test_a.py": b"def test_a(): ...\n",
    }
    for path, content in contents.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    folder: TreeFiles = FolderFiles(tmp_path)
    mapping: TreeFiles = MappingFiles(contents)
    assert list(folder.paths) == list(mapping.paths) == sorted(contents)
    assert [folder.read(path) for path in folder.paths] == [mapping.read(path) for path in mapping.paths]
    assert discover(folder, VerifySettings()) == discover(mapping, VerifySettings())


def test_nothing_outside_the_folder_is_listed_or_read(tmp_path: Path) -> None:
    (tmp_path / "secret.toml").write_text("[tool.ruff]\n")
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "pyproject.toml").symlink_to("../secret.toml")
    (folder / "up").symlink_to("..")
    (folder / "whole").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(folder / "setup.cfg")
    (folder / "a.py").write_text("")
    files = FolderFiles(folder)
    assert list(files.paths) == ["a.py"]
    for path in (
        "pyproject.toml",
        "../secret.toml",
        "up/secret.toml",
        "setup.cfg",
        "/etc/passwd",
        "nowhere",
        "",
        "a\0b",
    ):
        assert files.read(path) is None


@pytest.mark.parametrize("folder", [".git", "node_modules", ".venv", "__pycache__", ".tox"])
def test_folders_that_hold_nothing_of_the_repositorys_own_are_not_entered(tmp_path: Path, folder: str) -> None:
    (tmp_path / "a" / folder).mkdir(parents=True)
    (tmp_path / "a" / folder / "package.json").write_text("{}")
    assert list(FolderFiles(tmp_path).paths) == []


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * (READ_LIMIT + 1))
    (tmp_path / "fitting").write_bytes(b"x" * READ_LIMIT)
    files = FolderFiles(tmp_path)
    assert files.read("large") is None
    assert files.read("fitting") == b"x" * READ_LIMIT
    mapping = MappingFiles({"large": b"x" * (READ_LIMIT + 1), "fitting": b""})
    assert (mapping.read("large"), mapping.read("fitting"), mapping.read("nowhere")) == (None, b"", None)


def test_a_folder_that_is_not_there_offers_nothing(tmp_path: Path) -> None:
    assert list(FolderFiles(tmp_path / "nowhere").paths) == []


def test_names_of_any_bytes_are_survived(tmp_path: Path) -> None:
    for name in (b"\xff.py", "ü b.py".encode(), b"a\nb.py"):
        try:
            with os.fdopen(os.open(os.fsencode(tmp_path) + b"/" + name, os.O_CREAT | os.O_WRONLY), "wb"):
                pass
        except OSError:
            pytest.skip("this file system takes names of UTF-8 only")
    found = discover(FolderFiles(tmp_path), VerifySettings())
    assert [check.id for check in found.checks] == ["python-syntax"]
