"""codebase-analysis.md counts what the map lists, and says what it could not count."""

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.repomap import RepoMap
from fairwitness.runs.autopilot.initial_files import LARGEST, codebase_page
from runs.autopilot.written import NOW
from runs.feature.markdown_reader import seen
from support.fixtures import value_of


def _map(name: str = "filled-repo-map") -> RepoMap:
    return RepoMap.model_validate(value_of(f"003/{name}.json"))


@pytest.mark.req("A6")
def test_a_codebase_at_a_glance() -> None:
    assert codebase_page(_map()) == snapshot("""\
# Codebase analysis

Counted by Fair Witness at 2026-02-12T12:00:00Z from the map of `/absolute/path/to/project`: 1 source file.

## Languages

| Language | Files |
| --- | --- |
| typescript | 1 |

## Folders

| Folder | Files |
| --- | --- |
| `relative/path/to` | 1 |

## What the files hold

| What | How many | Counted in |
| --- | --- | --- |
| Functions | 1 | all files |
| Classes | 1 | all files |
| Exported names | 1 | all files |
| Import statements | 1 | all files |

## Files that import most

| File | Import statements |
| --- | --- |
| `relative/path/to/file.ts` | 1 |

## Files that export most

| File | Exported names |
| --- | --- |
| `relative/path/to/file.ts` | 1 |
""")


@pytest.mark.req("A6")
def test_a_map_that_was_cut_is_not_counted_as_whole() -> None:
    page = codebase_page(_map("filled-repo-map-capped"))
    assert page == snapshot("""\
# Codebase analysis

Counted by Fair Witness at 2026-02-12T12:00:00Z from the map of `/absolute/path/to/project`: 3 source files.

The map was cut to its size limit and lists 2 files; what was cut is not counted below.

## Languages

| Language | Files |
| --- | --- |
| typescript | 2 |
| json | 1 |

## Folders

| Folder | Files |
| --- | --- |
| `other` | 1 |
| `relative/path/to` | 1 |

## What the files hold

| What | How many | Counted in |
| --- | --- | --- |
| Functions | not known | 2 files not counted |
| Classes | not known | 2 files not counted |
| Exported names | 1 | 1 file not counted |
| Import statements | not known | 2 files not counted |

## Files that import most

| File | Import statements |
| --- | --- |
| `relative/path/to/file.ts` | 1 |

## Files that export most

| File | Exported names |
| --- | --- |
| `relative/path/to/file.ts` | 1 |
""")


def test_an_empty_repository_has_a_page_too() -> None:
    empty = {"total_files": 0, "languages": {}, "top_importers": [], "top_exporters": []}
    said = {"generated_at": NOW, "project_root": "/p", "version": 1, "size_cap_applied": False}
    page = codebase_page(RepoMap.model_validate({**said, "files": [], "summary": empty}))
    assert "0 source files" in page
    assert "| Functions | 0 | all files |" in page


def test_many_folders_are_shown_in_part_and_odd_names_stay_names() -> None:
    files = [{"path": f"d{number}/a|`b<i>.py"} for number in range(LARGEST + 3)]
    summary = {"total_files": len(files), "languages": {"other": len(files)}, "top_importers": [], "top_exporters": []}
    said = {"generated_at": NOW, "project_root": "/p/<b>", "version": 1, "size_cap_applied": True}
    page = codebase_page(RepoMap.model_validate({**said, "files": files, "summary": summary}))
    assert "… and 3 smaller folders" in page
    assert "| Functions | not known | 23 files not counted |" in page
    assert len(seen(page).headings) == 6
