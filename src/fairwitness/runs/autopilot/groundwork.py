"""What a run lays down before its first phase: git's ignored files, empty learnings, and the repository at a glance."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from tempfile import gettempdir

from fairwitness.contracts.autopilot.repomap import Language
from fairwitness.errors import NotStored
from fairwitness.git.objects import Objects
from fairwitness.git.repository import Repository
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.markdown import Markdown, code, counted, items, page, table
from fairwitness.runs.autopilot.ignored import gitignore_with
from fairwitness.runs.autopilot.learnings import Learnings
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.runs.autopilot.pages_codebase import LARGEST
from fairwitness.store.artifacts import Store
from fairwitness.store.layout import autopilot

GITIGNORE = ".gitignore"
_FILES = ("100644", "100755")
_LANGUAGES: dict[str, Language] = {
    ".ts": Language.TYPESCRIPT,
    ".tsx": Language.TYPESCRIPT,
    ".js": Language.JAVASCRIPT,
    ".jsx": Language.JAVASCRIPT,
    ".mjs": Language.JAVASCRIPT,
    ".cjs": Language.JAVASCRIPT,
    ".py": Language.PYTHON,
    ".go": Language.GO,
    ".rs": Language.RUST,
    ".java": Language.JAVA,
    ".md": Language.MARKDOWN,
    ".json": Language.JSON,
}
_MISSING = (
    "What the files hold (functions, classes, exported names, imports, calls): nobody has read them for this page.",
    "Which files import or export most: that needs a map of the repository, and this run has none.",
    "Which files are source files and which are data: every tracked file is counted.",
)


def lay_groundwork(log: AutopilotLog, files: Store, repository: Repository) -> None:
    """Everything of this module; done again, it changes nothing."""
    ignore_runtime_files(files)
    Learnings(log, files).begin()
    write_codebase_analysis(log, files, repository)


def ignore_runtime_files(files: Store) -> bool:
    """Adds our lines to the person's `.gitignore`, each once; what stands there stays, byte for byte.

    True if anything was missing. A file that is a link, or that somebody changes in this very moment, is refused.
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
    """`codebase-analysis.md` as of the commit that the run began with: what the names of its files tell."""
    commit = log.order().base_commit
    paths = tracked_files(repository, commit)
    content = page(_analysis(commit, paths), whole="`git ls-files`").encode()
    if not files.exists(autopilot.CODEBASE_ANALYSIS) or files.get(autopilot.CODEBASE_ANALYSIS) != content:
        files.put(autopilot.CODEBASE_ANALYSIS, content)
        killpoint("autopilot.codebase")


def tracked_files(repository: Repository, commit: str) -> tuple[str, ...]:
    """The plain files that git tracks at a commit; links and other repositories are none."""
    entries = Objects(repository.git, Path(gettempdir())).entries(repository.tree_of(commit))
    return tuple(path for path, entry in entries.items() if entry.mode in _FILES)


def language_of(path: str) -> Language:
    """The language of a file, by its name and nothing else.

    >>> language_of("src/app.TSX").value, language_of("Makefile").value
    ('typescript', 'other')
    """
    return _LANGUAGES.get(PurePosixPath(path).suffix.lower(), Language.OTHER)


def _analysis(commit: str, paths: Iterable[str]) -> Iterator[Markdown]:
    names = tuple(paths)
    yield Markdown("# Codebase analysis")
    yield Markdown(
        f"Counted by Fair Witness from the names of the {counted(len(names), 'file')} that git tracks at {code(commit)}."
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
    """Each name with how often it comes, the most frequent first."""
    counts = Counter(names)
    return [(name, str(count)) for name, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))]
