"""The files that a run writes before its first phase: `.gitignore` lines, learnings and codebase analysis."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from tempfile import gettempdir

from fairwitness.contracts.autopilot.repomap import MappedFile, RepoLanguage, RepoMap
from fairwitness.errors import NotStored
from fairwitness.git.objects import Objects
from fairwitness.git.repository import Repository
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.markdown import Markdown, code, counted, items, page, table
from fairwitness.runs.autopilot.learnings import Learnings
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.runs.autopilot.own_files import gitignore_with
from fairwitness.store.artifacts import Store
from fairwitness.store.layout import autopilot

LARGEST = 20
"""How many folders are listed: those with the most files."""


def codebase_page(repo_map: RepoMap) -> str:
    """Return `codebase-analysis.md`, counted from a map of the repository."""
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


GITIGNORE = ".gitignore"
_FILES = ("100644", "100755")
_LANGUAGES: dict[str, RepoLanguage] = {
    ".ts": RepoLanguage.TYPESCRIPT,
    ".tsx": RepoLanguage.TYPESCRIPT,
    ".js": RepoLanguage.JAVASCRIPT,
    ".jsx": RepoLanguage.JAVASCRIPT,
    ".mjs": RepoLanguage.JAVASCRIPT,
    ".cjs": RepoLanguage.JAVASCRIPT,
    ".py": RepoLanguage.PYTHON,
    ".go": RepoLanguage.GO,
    ".rs": RepoLanguage.RUST,
    ".java": RepoLanguage.JAVA,
    ".md": RepoLanguage.MARKDOWN,
    ".json": RepoLanguage.JSON,
}
_MISSING = (
    "What the files hold (functions, classes, exported names, imports, calls): they were not read for this page.",
    "Which files import or export most: that needs a map of the repository, and this run has none.",
    "Which files are source files and which are data: every tracked file is counted.",
)


def write_initial_files(log: AutopilotLog, files: Store, repository: Repository) -> None:
    """Write all initial files; repeating it changes nothing."""
    ignore_runtime_files(files)
    Learnings(log, files).begin()
    write_codebase_analysis(log, files, repository)


def ignore_runtime_files(files: Store) -> bool:
    """Add our missing lines to the user's `.gitignore`; everything else in it stays byte for byte.

    Return True if a line was missing. A link, or a file that changes at the same moment, is refused.
    """
    try:
        before = files.get(GITIGNORE)
    except NotStored:
        before = b""
    after = gitignore_with(before.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    if after == before:
        return False
    files.grow(GITIGNORE, after)
    killpoint("autopilot.gitignore")
    return True


def write_codebase_analysis(log: AutopilotLog, files: Store, repository: Repository) -> None:
    """Write `codebase-analysis.md` for the commit that the run starts from, based on file names only."""
    commit = log.order().base_commit
    paths = tracked_files(repository, commit)
    content = page(_analysis(commit, paths), whole="`git ls-files`").encode()
    if not files.exists(autopilot.CODEBASE_ANALYSIS) or files.get(autopilot.CODEBASE_ANALYSIS) != content:
        files.put(autopilot.CODEBASE_ANALYSIS, content)
        killpoint("autopilot.codebase")


def tracked_files(repository: Repository, commit: str) -> tuple[str, ...]:
    """Return the regular files that git tracks at a commit, without links and submodules."""
    entries = Objects(repository.git, Path(gettempdir())).entries(repository.tree_of(commit))
    return tuple(path for path, entry in entries.items() if entry.mode in _FILES)


def language_of(path: str) -> RepoLanguage:
    """Return the language of a file by its name.

    >>> language_of("src/app.TSX").value, language_of("Makefile").value
    ('typescript', 'other')
    """
    return _LANGUAGES.get(PurePosixPath(path).suffix.lower(), RepoLanguage.OTHER)


def _analysis(commit: str, paths: Iterable[str]) -> Iterator[Markdown]:
    names = tuple(paths)
    yield Markdown("# Codebase analysis")
    yield Markdown(
        f"Counted by Fair Witness from the names of the {counted(len(names), 'file')} "
        f"that git tracks at {code(commit)}."
    )
    yield Markdown("## Languages")
    yield table(("Language", "Files"), _ranked(language_of(path).value for path in names), "git tracks no file.")
    yield Markdown("## Folders")
    folders = _ranked(path.rpartition("/")[0] or "." for path in names)
    yield table(("Folder", "Files"), [(code(name), count) for name, count in folders[:LARGEST]], "git tracks no file.")
    if len(folders) > LARGEST:
        yield Markdown(f"… and {counted(len(folders) - LARGEST, 'smaller folder')}")
    yield Markdown("## What is not known")
    yield items([Markdown(f"- {each}") for each in _MISSING], "")


def _ranked(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return each name with its count, most frequent first."""
    counts = Counter(names)
    return [(name, str(count)) for name, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))]
