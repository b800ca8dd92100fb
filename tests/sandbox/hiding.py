"""A worktree with hidden paths, and a command that goes after them; started as root and as a user.

`python -m sandbox.hiding <folder> <w or r>` prints, as JSON, what the command said and what the sandbox did.
"""

import json
import os
import sys
from pathlib import Path

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command, Confinement
from fairwitness.sandbox.namespaces import NamespaceRunner
from fairwitness.sandbox.probe import probe

CANARY = "canary-of-the-repository"
FILES = {
    ".agent/settings.json": json.dumps({"hook": CANARY}),
    ".agent/notes.txt": "seen\n",
    ".agent/deep/down/config.toml": f"hook = '{CANARY}'\n",
    ".tool/settings.json": json.dumps({"hook": CANARY}),
    ".tool/more/hook.sh": f"echo {CANARY}\n",
    "plain.cfg": CANARY,
    "src/a.py": "a = 1\n",
}
HIDDEN = (".agent/settings.json", ".agent/deep/down/config.toml", ".tool", "plain.cfg", "absent.json")
ATTACK = r"""
import ctypes, json, os, shutil, sys

library = ctypes.CDLL(None, use_errno=True)
NUMBERS = {"x86_64": (316, 165, 166, 272), "aarch64": (276, 40, 39, 97)}.get(os.uname().machine)
told = {}

def tries(name, act):
    try:
        told[name] = act()
    except OSError as error:
        told[name] = "errno " + str(error.errno)

def call(which, *arguments):
    words = [ctypes.c_char_p(each) if isinstance(each, bytes) else ctypes.c_long(each) for each in arguments]
    if library.syscall(ctypes.c_long(NUMBERS[which]), *words) < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return "done"

def look(path):
    return sorted(os.listdir(path)) if os.path.isdir(path) else open(path).read()

def write(path, how=os.O_WRONLY | os.O_CREAT):
    handle = os.open(path, how, 0o644)
    os.write(handle, b"mine")
    os.close(handle)

here = os.getcwd()
paths = [".agent/settings.json", ".agent/deep/down/config.toml", ".tool", "plain.cfg"]
inside = [".tool/settings.json", ".tool/more/hook.sh"]
for path in paths:
    tries("look " + path, lambda: look(path))
    for start in ("/proc/self/root" + here, "/proc/1/root" + here, "/proc/self/cwd", "/proc/thread-self/cwd"):
        tries("look " + start + " " + path, lambda: look(start + "/" + path))
    tries("rename " + path, lambda: os.rename(path, path + ".old"))
    tries("rename over " + path, lambda: os.rename("src/a.py", path))
    tries("exchange " + path, lambda: call(0, -100, path.encode(), -100, b"src/a.py", 2))
    tries("link " + path, lambda: os.link(path, "linked") or look("linked"))
    tries("chmod " + path, lambda: os.chmod(path, 0o777))
    tries("utime " + path, lambda: os.utime(path, (1, 1)))
    tries("unmount " + path, lambda: call(2, (here + "/" + path).encode(), 2))
    tries("remount " + path, lambda: call(1, b"none", (here + "/" + path).encode(), b"none", 32 | 4096, 0))
    tries("cover " + path, lambda: call(1, (here + "/src").encode(), (here + "/" + path).encode(), b"none", 4096, 0))
    tries("unlink " + path, lambda: os.unlink(path))
    tries("rmdir " + path, lambda: os.rmdir(path))
    tries("symlink " + path, lambda: os.symlink("src/a.py", path))
for path in inside:
    tries("look " + path, lambda: look(path))
for path in (*[each for each in paths if each != ".tool"], ".tool/settings.json", ".tool/new"):
    tries("write " + path, lambda: write(path))
    tries("empty " + path, lambda: write(path, os.O_WRONLY | os.O_TRUNC))
for path in (".agent", ".agent/deep", ".agent/deep/down", ".tool"):
    tries("move " + path, lambda: os.rename(path, "moved") or look("moved"))
    tries("remove " + path, lambda: shutil.rmtree(path))
    tries("make " + path, lambda: os.mkdir(path))
def alone():
    call(3, 0x10000000 | 0x00020000)
    call(2, (here + "/.tool").encode(), 2)
    return look(".tool")
tries("a namespace of its own", alone)
for folder, folders, names in os.walk("."):
    for name in names:
        tries("walk " + folder + "/" + name, lambda: look(folder + "/" + name))
tries("new", lambda: write("absent.json"))
told["mounts"] = [line.split()[4] for line in open("/proc/self/mountinfo") if here in line]
print(json.dumps(told))
"""


def plant(worktree: Path) -> None:
    """The repository as somebody else made it."""
    for path, text in FILES.items():
        (worktree / path).parent.mkdir(parents=True, exist_ok=True)
        (worktree / path).write_text(text)


def marks(worktree: Path) -> dict[str, tuple[object, ...]]:
    """Everything about the hidden files that could be changed, the same as before if nobody did."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (".tool", *(path for path, text in FILES.items() if CANARY in text)):
        status = (worktree / path).lstat()
        content = (worktree / path).read_bytes().hex() if path in FILES else ""
        found[path] = (status.st_ino, status.st_mode, status.st_uid, status.st_size, status.st_mtime_ns, content)
    return found


def main(folder: str, how: str) -> None:
    """One attack."""
    worktree = Path(folder)
    plant(worktree)
    before = marks(worktree)
    confinement = Confinement(
        worktree=folder, writable=how == "w", env={}, hidden=HIDDEN, min_tier=SandboxTier.NAMESPACES
    )
    command = Command(
        argv=("/usr/bin/python3", "-I", "-S", "-c", ATTACK), confinement=confinement, purpose="after hidden paths"
    )
    came = NamespaceRunner(probe()).run(command)
    after = marks(worktree)
    sys.stdout.write(
        json.dumps(
            {
                "uid": os.getuid(),
                "end": came.result.end,
                "lost": came.result.sandbox_error,
                "stderr": came.stderr.decode(),
                "changed": sorted(path for path in before if before[path] != after[path]),
                "top": sorted(path.name for path in worktree.iterdir()),
                "violations": [[each.kind, each.path, each.blocked] for each in came.result.violations],
                "told": json.loads(came.stdout or b"{}"),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
