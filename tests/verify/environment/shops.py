"""A small shop as a repository, the ways it can be installed, and a check of it run in the sandbox."""

import base64
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairwitness.contracts.common.sandbox import Command, Confinement
from fairwitness.contracts.verify.checks import CheckSpec, Language, Project, ReportFormat, SetupSettings
from fairwitness.sandbox.runner import Finished, Runner
from fairwitness.verify.environment.model import Environment, NoEnvironment, ResolvedCommand
from fairwitness.verify.environment.origin import origin_problem
from fairwitness.verify.environment.preparation import prepare
from fairwitness.verify.environment.resolve import furnish, resolve
from verify.discovery.tree_files import FolderFiles

SHOP = Project(root=".", language=Language.PYTHON, manifests=("pyproject.toml",), packages=("shop",), sources=("src",))
MANIFEST = '[project]\nname = "shop"\nversion = "1.2"\ndependencies = []\n'
PRICE = "def price() -> int:\n    return {}\n"
TEST = "import shop\n\n\ndef test_price() -> None:\n    assert shop.price() == {}\n"
OWN_BIN = f"{sys.prefix}/bin"


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Files under a folder."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


def shop(folder: Path, more: Mapping[str, str] | None = None, *, price: int, expected: int | None = None) -> Path:
    """A src-layout project whose test asks for a price."""
    asked = price if expected is None else expected
    files = {
        "pyproject.toml": MANIFEST,
        "src/shop/__init__.py": PRICE.format(price),
        "tests/test_shop.py": TEST.format(asked),
    }
    return write(folder, {**files, **(more or {})})


def machine(path: str = OWN_BIN, **more: str) -> dict[str, str]:
    """A person's variables, with the interpreter that runs these tests as the machine's own and no package index."""
    return {"PATH": f"{path}:/usr/bin:/bin", "HOME": "/nonexistent", "PIP_CONFIG_FILE": "/dev/null", **more}


def wheel(folder: Path, name: str, version: str, files: Mapping[str, str], requires: Sequence[str] = ()) -> Path:
    """A wheel with some files, made by hand."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {line}\n" for line in requires)
    tags = "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    content = {**files, f"{info}/METADATA": metadata, f"{info}/WHEEL": tags}
    record = "".join(f"{path},sha256={_hash(text)},{len(text.encode())}\n" for path, text in content.items())
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inner, text in {**content, f"{info}/RECORD": record + f"{info}/RECORD,,\n"}.items():
            archive.writestr(inner, text)
    return path


def _hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")


def venv(folder: Path) -> Path:
    """A virtual environment without anything, and its site folder."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return next((folder / "lib").glob("python*/site-packages"))


def lend_tools(site: Path) -> None:
    """Gives an environment copies of our own test tools, as if they were installed in it."""
    ours = next(Path(entry) for entry in sys.path if entry.endswith("site-packages"))
    for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        for folder in (ours / name, *ours.glob(f"{name}-*.dist-info")):
            shutil.copytree(folder, site / folder.name)
    shutil.copyfile(ours / "py.py", site / "py.py")


def install(site: Path, archive: Path) -> None:
    """Unpacks a wheel, as a stale copy would lie there."""
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(site)


def editable(site: Path, name: str, folder: Path, *, line: str | None = None) -> None:
    """Installs a folder by reference: its metadata, and a line that the interpreter reads as it starts."""
    info = f"{name}-0.0.dist-info"
    url = f'{{"url": "file://{folder}", "dir_info": {{"editable": true}}}}'
    record = f"_{name}.pth,,\n{info}/METADATA,,\n{info}/direct_url.json,,\n{info}/RECORD,,\n"
    write(
        site,
        {
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.0\n",
            f"{info}/direct_url.json": url,
            f"{info}/RECORD": record,
            f"_{name}.pth": f"{line or folder / 'src'}\n",
        },
    )


def check(
    *argv: str, report: ReportFormat = ReportFormat.JUNIT, tool: str = "pytest", writes: bool = True
) -> CheckSpec:
    """A check of the project at the top."""
    return CheckSpec(
        id=tool,
        name="tests",
        tier=2,
        root=".",
        language=Language.PYTHON,
        tool=tool,
        argv=argv,
        report=report,
        report_on="file" if report is ReportFormat.JUNIT else "stdout",
        writes=writes,
        required=True,
        found_in="pyproject.toml",
    )


PYTEST = check("{python}", "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--junitxml={report}")


@dataclass(frozen=True)
class Ran:
    """What came of a check."""

    finished: Finished
    resolved: ResolvedCommand
    problem: str | None

    @property
    def said(self) -> str:
        """Everything it printed."""
        return (self.finished.stdout + self.finished.stderr).decode()

    @property
    def passed(self) -> bool:
        """True if the command ended with 0."""
        return self.finished.result.exit_code == 0


@dataclass(frozen=True)
class Bench:
    """A sandbox, a state folder, and a place for reports."""

    runner: Runner
    folder: Path

    @property
    def state(self) -> Path:
        """Where environments are kept."""
        return self.folder / "state"

    def prepare(
        self,
        tree: Path,
        project: Project = SHOP,
        *,
        user_checkout: Path | None = None,
        settings: SetupSettings | None = None,
        environ: Mapping[str, str] | None = None,
        tools: Sequence[str] = (),
    ) -> Environment | NoEnvironment:
        """The environment of a tree."""
        return prepare(
            project,
            FolderFiles(tree),
            tree,
            state=self.state,
            user_checkout=user_checkout,
            settings=settings or SetupSettings(),
            runner=self.runner,
            tools=tools,
            environ=environ if environ is not None else machine(),
        )

    def ready(self, tree: Path, project: Project = SHOP, **more: object) -> Environment:
        """The same where there must be one."""
        prepared = self.prepare(tree, project, **more)  # type: ignore[arg-type]  # passed on as they came
        assert isinstance(prepared, Environment), prepared
        return prepared

    def run(self, environment: Environment, tree: Path, spec: CheckSpec = PYTEST, project: Project = SHOP) -> Ran:
        """Runs a check in the sandbox and asks where its code came from."""
        out = Path(tempfile.mkdtemp(prefix="out-", dir=self.folder))
        (out / "report").mkdir(parents=True)
        (out / "tmp").mkdir()
        furnish(tree, project, environment)
        resolved = resolve(spec, environment, checkout=tree, report=out / "report" / "report", tmp=out / "tmp")
        assert isinstance(resolved, ResolvedCommand), resolved
        command = Command(
            argv=resolved.argv,
            confinement=Confinement(
                worktree=str(tree),
                writable=spec.writes,
                read=tuple(map(str, resolved.read)),
                write=(str(out / "report"), str(out / "tmp")),
                env=resolved.env,
            ),
            purpose="a check of a test",
        )
        finished = self.runner.run(command)
        return Ran(finished, resolved, origin_problem(project, resolved, tree))
