"""What the orchestrator owes where a tier cannot hold an attempt: the change is seen, and nothing of it is used."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fairwitness.app.assembly.backends import runner
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command, Confinement, End, SandboxLimits
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.sandbox.runner import Finished
from sandbox.escapes import world
from sandbox.escapes.starting import Identity, kernel_refuses

pytestmark = [pytest.mark.req("A15"), pytest.mark.timeout(60)]

CANARY = "canary-in-the-environment-0123456789"
_HERE = Identity("here", None)
_PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else str(Path(sys.executable).resolve())

Run = Callable[..., Finished]


@pytest.fixture
def scene() -> Iterator[world.Scene]:
    """A world to be attacked, with a real repository and worktree in it."""
    folder = Path(tempfile.mkdtemp(prefix="fairwitness-duty-"))
    folder.chmod(0o711)
    made = world.build(folder, "duty")
    shutil.rmtree(made.git)
    (made.worktree / ".git").unlink()
    _plain_git(made.git.parent, "init", "-q", "-b", "main")
    _plain_git(made.git.parent, "commit", "-q", "--allow-empty", "-m", "first")
    shutil.rmtree(made.worktree)
    _plain_git(made.git.parent, "worktree", "add", "-q", "--detach", str(made.worktree))
    (made.worktree / "code.py").write_text("answer = 42\n")
    yield made
    made.remove()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["ns", "ll", "uid"])
def tier(request: pytest.FixtureRequest) -> SandboxTier:
    """Each tier that this machine can have, as whoever runs the tests."""
    if reason := kernel_refuses(request.param, _HERE):
        pytest.skip(reason)
    return SandboxTier(request.param)


@pytest.fixture
def run(tier: SandboxTier, scene: world.Scene) -> Run:
    """Runs a Python program in the scene's worktree."""
    running = runner(tier)

    def start(
        program: str,
        *,
        env: dict[str, str] | None = None,
        worktree: Path | None = None,
        observe: bool = True,
        guards: tuple[str, ...] = (),
    ) -> Finished:
        confinement = Confinement(
            worktree=str(worktree or scene.worktree),
            writable=True,
            read=(str(scene.folder("visible")), sys.base_prefix),
            env={"PATH": os.defpath, **(env or {})},
            min_tier=tier,
            guards=guards,
        )
        argv = (_PYTHON, "-I", "-S", "-c", program)
        return running.run(
            Command(
                argv=argv, confinement=confinement, limits=SandboxLimits(wall_s=60), purpose="a duty", observe=observe
            )
        )

    return start


def _plain_git(folder: Path, *arguments: str) -> str:
    """Git as anybody would call it, but for the home folder and the identity."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    done = subprocess.run(["git", *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


_PLANT = """
import os, pathlib
git = pathlib.Path({where!r})
for way in (lambda: git.rename("was-git"), lambda: git.unlink()):
    try:
        way()
    except OSError as error:
        print(error)
for folder in ("objects", "refs/heads"):
    (git / folder).mkdir(parents=True, exist_ok=True)
(git / "HEAD").write_text("ref: refs/heads/main\\n")
(git / "config").write_text('[core]\\n\\tfsmonitor = "touch {proof}; false"\\n')
"""


def _files(scene: world.Scene) -> set[str]:
    """The files of the worktree, read as a run reads them after each command."""
    repository = Repository.open(scene.git.parent)
    shadow = Shadow.open(scene.root / "state" / "git", repository)
    return set(shadow.entries(shadow.snapshot(scene.worktree, repository.tree_of("HEAD"))))


def test_another_git_folder_is_seen_and_our_git_runs_nothing_of_it(run: Run, scene: world.Scene) -> None:
    """W10: the worktree's `.git` is inside what a command may write, and not every tier can keep it."""
    proof = scene.worktree / "fsmonitor-ran"
    before = scene.pointer()
    result = run(_PLANT.format(where=".git", proof=proof)).result
    assert not proof.exists()
    if scene.pointer() == before:
        assert result.dotgit_ok
    else:
        assert not result.dotgit_ok
        assert result.end is End.VIOLATION
        assert ("git-dir", f"{scene.worktree}/.git") in {(v.kind, v.path) for v in result.violations}, result.violations
    assert "code.py" in _files(scene)
    assert not proof.exists()
    if scene.pointer() != before:
        # whoever owns it: git minds another owner, but a person's own .git would be theirs
        _plain_git(scene.worktree, "-c", "safe.directory=*", "status")
        assert proof.exists(), "git as anybody calls it does run it: so this test can fail"


@pytest.mark.parametrize("where", [".git", "vendor/.git", "vendor/deep/.git"])
def test_a_repository_where_none_was_is_a_violation(run: Run, scene: world.Scene, where: str) -> None:
    """A tree under test is a plain folder: what makes a repository of it, or of a part of it, is seen in every tier."""
    exported = scene.root / "tasks" / "exported"
    exported.mkdir(mode=0o755)
    result = run(_PLANT.format(where=where, proof=exported / "fsmonitor-ran"), worktree=exported).result
    assert (exported / where / "config").exists()
    assert not result.dotgit_ok
    assert result.end is End.VIOLATION
    assert ("git-dir", f"{exported}/{where}") in {(v.kind, v.path) for v in result.violations}, result.violations


def test_a_worktree_that_keeps_its_git_pointer_is_fine(run: Run, scene: world.Scene) -> None:
    result = run("open('new.txt', 'w').write('honest')").result
    assert (result.end, result.dotgit_ok, result.violations) == (End.OK, True, ())
    assert "new.txt" in _files(scene)


_METADATA = """
import os
for file in {files!r}:
    for change in (lambda: os.chmod(file, 0o600), lambda: os.utime(file, (1, 1)),
                   lambda: os.setxattr(file, "user.mine", b"1")):
        try:
            change()
        except OSError as error:
            print(error)
"""


def test_changed_metadata_outside_is_held_or_at_least_seen(run: Run, scene: world.Scene) -> None:
    """W12: Landlock does not know chmod, utime and xattr; whoever cannot hold them has to notice them."""
    files = [str(scene.folder(name) / "file.txt") for name in ("outside", "visible")]
    before = scene.snapshot()
    result = run(_METADATA.format(files=files)).result
    after = scene.snapshot()
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    seen = {violation.path for violation in result.violations if not violation.blocked}
    assert changed <= seen, result.violations
    if changed:
        assert result.end is End.VIOLATION


def test_changed_metadata_of_guarded_files_is_seen_without_an_observer(run: Run, scene: world.Scene) -> None:
    """W12 on a kernel without notifications: what must stay as it is, the runner looks at before and after."""
    guarded = tuple(str(scene.folder(name)) for name in ("outside", "visible", "home", "repo"))
    files = [str(scene.folder(name) / "file.txt") for name in ("outside", "visible")]
    before = scene.snapshot()
    result = run(_METADATA.format(files=files), observe=False, guards=guarded).result
    changed = {path for path, found in scene.snapshot().items() if before.get(path) != found}
    found = {(violation.kind, violation.path, violation.source, violation.blocked) for violation in result.violations}
    assert found == {("guard", path, "guard", False) for path in changed}
    assert result.guards_ok is not bool(changed)
    assert (result.end is End.VIOLATION) is bool(changed)
    assert result.dotgit_ok


@pytest.mark.parametrize("tier", ["uid"], indirect=True)
def test_what_a_tasks_own_user_left_in_open_places_is_removed(scene: world.Scene, run: Run) -> None:
    """W21: places that everybody may write to stay open to a task's own user; nothing stays there."""
    left = [Path(f"{place}/{scene.temporary.name}-shared") for place in ("/tmp", "/var/tmp", "/dev/shm")]
    program = "\n".join(f"open({str(path)!r}, 'w').write('mine')" for path in left)
    finished = run(program)
    assert finished.result.exit_code == 0, finished
    assert [path for path in left if path.exists()] == []


def test_no_command_line_of_the_runner_holds_a_value_of_the_environment(run: Run) -> None:
    """R09: command lines can be read by everybody, so what may be secret never stands in one."""
    found: set[bytes] = set()
    started, over = threading.Event(), threading.Event()

    def look() -> None:
        started.set()
        while not over.is_set():
            for name in os.listdir("/proc"):  # noqa: PTH208 - names only
                with suppress(OSError):
                    line = Path(f"/proc/{name}/cmdline").read_bytes() if name.isdigit() else b""
                    found.update({line} if CANARY.encode() in line or b"look-for-me" in line else set())

    looking = threading.Thread(target=look)
    looking.start()
    started.wait()
    try:
        program = "import os, time; time.sleep(0.4); print('look-for-me', len(os.environ['TOKEN']))"
        finished = run(program, env={"TOKEN": CANARY})
    finally:
        over.set()
        looking.join()
    assert finished.stdout == f"look-for-me {len(CANARY)}\n".encode(), finished
    assert found, "the runner's command lines were looked at"
    assert not [line for line in found if CANARY.encode() in line]
    told = finished.result.model_dump_json()
    assert "TOKEN" in told
    assert CANARY not in told


_LATE = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for handle in range(3):
            os.close(handle)
        for _ in range(100):
            open("code.py", "a").write("# late\\n")
            time.sleep(0.02)
        os._exit(0)
    os._exit(0)
os.wait()
while os.path.getsize("code.py") < 20:
    time.sleep(0.005)
"""


def test_nothing_is_written_after_the_tree_was_hashed(run: Run, scene: world.Scene) -> None:
    """F7: whoever is left when the command ends is dead before anybody looks at the tree."""
    result = run(_LATE).result
    code = scene.worktree / "code.py"
    hashed = code.read_bytes()
    assert b"# late" in hashed, result
    time.sleep(0.4)
    assert code.read_bytes() == hashed
    assert result.survivors_killed is None or result.survivors_killed >= 1


_ARTEFACTS = """
import os
os.symlink({secret!r}, "link.json")
os.symlink("/proc/self/environ", "environ.json")
os.symlink("/dev/zero", "zero.json")
os.symlink("..", "up")
os.mkfifo("fifo.json")
with open("sparse.json", "wb") as file:
    try:
        file.truncate(200 << 20)
    except OSError:
        file.truncate(1 << 20)
open("honest.json", "w").write("{{}}")
"""


def test_what_a_command_leaves_as_an_artefact_is_read_only_if_it_is_a_plain_file(run: Run, scene: world.Scene) -> None:
    """A1 to A4: the files room has these one by one; here they come out of a sandbox."""
    from fairwitness.errors import UnsafePath
    from fairwitness.kit.files import read_plain

    secret = scene.folder("visible") / "file.txt"
    run(_ARTEFACTS.format(secret=str(secret)))
    # a hard link cannot be made in any tier; one that stood there is refused all the same
    (scene.worktree / "hard.json").hardlink_to(secret)
    assert read_plain(scene.worktree, "honest.json", limit=1000) == b"{}"
    planted = ("link.json", "environ.json", "zero.json", "up/other/secret.txt", "fifo.json", "sparse.json", "hard.json")
    for name in planted:
        assert os.path.lexists(scene.worktree / name.split("/")[0]), name
        started = time.monotonic()
        with pytest.raises(UnsafePath):
            read_plain(scene.worktree, name, limit=1000)
        assert time.monotonic() - started < 20, name
    with pytest.raises(UnsafePath):
        read_plain(scene.worktree, "../other/secret.txt", limit=1000)
