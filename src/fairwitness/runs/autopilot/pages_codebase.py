"""codebase-analysis.md: the repository at a glance, counted from its map and from nothing else."""

from collections.abc import Iterator

from fairwitness.contracts.autopilot.repomap import MappedFile, RepoMap
from fairwitness.kit.markdown import Markdown, code, counted, page, table
from fairwitness.store.layout import autopilot

LARGEST = 20
"""How many folders are listed: those with the most files."""


def codebase_page(repo_map: RepoMap) -> str:
    """`codebase-analysis.md`."""
    return page(_codebase(repo_map), whole=f"`{autopilot.REPO_MAP}`")


def _codebase(repo_map: RepoMap) -> Iterator[Markdown]:
    summary = repo_map.summary
    yield Markdown("# Codebase analysis")
    yield Markdown(
        f"Counted by Fair Witness at {repo_map.generated_at} from the map of {code(repo_map.project_root)}: "
        f"{counted(summary.total_files, 'source file')}."
    )
    if repo_map.size_cap_applied:
        yield Markdown(
            f"The map was cut to its size limit and lists {counted(len(repo_map.files), 'file')}; what was cut is not "
            "counted below."
        )
    yield Markdown("## Languages")
    yield table(
        ("Language", "Files"),
        [
            (language.value, str(count))
            for language, count in sorted(summary.languages.items(), key=lambda each: (-each[1], each[0].value))
        ],
        "No source file was found.",
    )
    yield Markdown("## Folders")
    yield _folders(repo_map.files)
    yield Markdown("## What the files hold")
    yield _contents(repo_map.files)
    yield Markdown("## Files that import most")
    yield table(
        ("File", "Import statements"),
        [(code(each.path), str(each.import_count)) for each in summary.top_importers],
        "No file imports another.",
    )
    yield Markdown("## Files that export most")
    yield table(
        ("File", "Exported names"),
        [(code(each.path), str(each.export_count)) for each in summary.top_exporters],
        "No file exports a name.",
    )


def _folders(files: tuple[MappedFile, ...]) -> Markdown:
    counts: dict[str, int] = {}
    for file in files:
        folder = file.path.rpartition("/")[0] or "."
        counts[folder] = counts.get(folder, 0) + 1
    ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    drawn = table(
        ("Folder", "Files"), [(code(name), str(count)) for name, count in ranked[:LARGEST]], "No file is listed."
    )
    more = len(ranked) - LARGEST
    return Markdown(f"{drawn}\n\n… and {counted(more, 'smaller folder')}") if more > 0 else drawn


def _contents(files: tuple[MappedFile, ...]) -> Markdown:
    parts = (
        ("Functions", [file.functions for file in files]),
        ("Classes", [file.classes for file in files]),
        ("Exported names", [file.exports for file in files]),
        ("Import statements", [file.imports for file in files]),
    )
    rows = []
    for name, lists in parts:
        known = [each for each in lists if each is not None]
        missing = len(lists) - len(known)
        number = str(sum(len(each) for each in known)) if known or not lists else "not known"
        rows.append((name, number, "all files" if not missing else f"{counted(missing, 'file')} not counted"))
    return table(("What", "How many", "Counted in"), rows, "")
