"""Projects whose tool chain is their test runner: Rust, Go, Maven and Gradle."""

from fairwitness.contracts.verify.checks import LONG_S, Project, ReportFormat
from fairwitness.verify.discovery.documents import Unreadable, at
from fairwitness.verify.discovery.specs import Found
from fairwitness.verify.discovery.tree import Tree, inside, join

_RUST = ("Cargo.toml", "Cargo.lock", "rust-toolchain", "rust-toolchain.toml", ".cargo/config.toml", "build.rs")
_GO = ("go.mod", "go.sum", "go.work", "go.work.sum", "vendor/modules.txt")
_JAVA = (
    *("pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties"),
    *("gradle.lockfile", "gradle/libs.versions.toml", "gradle/wrapper/gradle-wrapper.properties", ".mvn/maven.config"),
)


def look_at_rust(tree: Tree, found: Found) -> None:
    """Notes a crate or a workspace of crates."""
    manifest = tree.toml(join(found.root, "Cargo.toml"))
    crates = [
        path
        for path in tree.under(found.root)
        if path.endswith("/Cargo.toml") and path != join(found.root, "Cargo.toml")
    ]
    found.project = _describe(tree, found, _RUST, crates if at(manifest, "workspace") is not None else [])
    if isinstance(manifest, Unreadable):
        found.unreadable("Cargo.toml", manifest.reason)
        return
    where = found.where("Cargo.toml")
    # What is compiled goes into our folder; without a lock file cargo still writes one into the tree.
    common = ["--offline", "--target-dir", "{tmp}/target"]
    common += ["--workspace"] if at(manifest, "workspace") is not None else []
    common += ["--locked"] if tree.has(join(found.root, "Cargo.lock")) else []
    found.check(
        "cargo-test",
        "tests",
        ("cargo", "test", "--no-fail-fast", *common),
        tool="cargo",
        report=ReportFormat.CARGO,
        writes=True,
        found_in=where,
    )
    # what an editor shows for Rust is this very command
    found.check(
        "cargo-check",
        "ide-diagnostics",
        ("cargo", "check", "--all-targets", "--message-format=short", *common),
        tool="cargo",
        writes=True,
        timeout_s=LONG_S,
        found_in=where,
    )
    clippy = ("cargo", "clippy", "--all-targets", "--message-format=short", *common)
    found.check("cargo-clippy", "lint", clippy, tool="cargo", writes=True, timeout_s=LONG_S, found_in=where)
    found.check("cargo-fmt", "lint", ("cargo", "fmt", "--all", "--", "--check"), tool="cargo", found_in=where)


def look_at_go(tree: Tree, found: Found) -> None:
    """Notes a Go module."""
    found.project = _describe(tree, found, _GO, [])
    where = found.where("go.mod")
    found.check(
        "go-test",
        "tests",
        ("go", "test", "-json", "./..."),
        tool="go",
        report=ReportFormat.GO_TEST,
        writes=True,
        found_in=where,
    )
    found.check("go-vet", "ide-diagnostics", ("go", "vet", "./..."), tool="go", timeout_s=LONG_S, found_in=where)
    # a program that is built by itself would be written into the tree; with this name nothing is
    found.check("go-build", "build", ("go", "build", "-o", "/dev/null", "./..."), tool="go", found_in=where)


def look_at_java(tree: Tree, found: Found) -> None:
    """Notes a Maven or Gradle build.

    Both write one report for each test class into folders of the tree (target/surefire-reports,
    build/test-results/test) that no option moves to a file of ours, so the exit code is all that is taken from them.
    """
    inner = [
        path for path in tree.under(found.root) if path.endswith(("/pom.xml", "/build.gradle", "/build.gradle.kts"))
    ]
    found.project = _describe(tree, found, _JAVA, inner)
    if tree.has(join(found.root, "pom.xml")):
        where = found.where("pom.xml")
        found.check("maven-test", "tests", ("mvn", "-o", "-q", "-B", "test"), tool="mvn", writes=True, found_in=where)
        package = ("mvn", "-o", "-q", "-B", "-DskipTests", "package")
        found.check("maven-build", "build", package, tool="mvn", writes=True, found_in=where)
        return
    where = found.where(tree.first(found.root, "build.gradle", "build.gradle.kts") or "build.gradle")
    gradle = ("gradle", "--offline", "--no-daemon", "--console=plain", "--project-cache-dir", "{tmp}/gradle")
    found.check("gradle-test", "tests", (*gradle, "test"), tool="gradle", writes=True, found_in=where)
    found.check("gradle-build", "build", (*gradle, "assemble"), tool="gradle", writes=True, found_in=where)


def _describe(tree: Tree, found: Found, names: tuple[str, ...], inner: list[str]) -> Project:
    own = [join(found.root, name) for name in names if tree.has(join(found.root, name))]
    return Project(
        root=found.root,
        language=found.language,
        manifests=tuple(dict.fromkeys([*own, *(path for path in inner if inside(path, found.root))])),
        sources=(found.root,),
    )
