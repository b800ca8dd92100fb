"""How many second attempts succeed with the retry material and without it, on published projects.

For each fault a forge run has one task. The model behind the `api` backend is a loopback server that answers only from
the request: it makes its mistake, unless the request contains the words of the failing test's output that show the
cause; then it makes the repair. In the ablation this server removes the sections of retry material from each request
before the model reads it. Evidence decides: an attempt succeeds if the gate of its task opens.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from fairwitness.runs.shared.retry_sections import TITLES

FAULTS = Path(__file__).with_name("retry_faults.yaml")
_GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "Ann" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "ann@example.org" for who in ("AUTHOR", "COMMITTER")},
}
_CRITERION, _WAIVER = "every test passes", "its behaviour stays as its tests describe it"
_WALKTHROUGH = (
    "## Summary\n\nDone.\n\n## Approach\n\nOne place.\n\n## Issues Encountered\n\nNone.\n\n## Testing\n\nNone.\n"
)
_TASK = "## Description\n\nRework {name} in {path}.\n\n## Context\n\nNone.\n\n## Instructions\n\nChange only {path}.\n"


class Fault(NamedTuple):
    """A mistake in one place of a project, the words that show its cause, and the repair."""

    name: str
    path: str
    old: str
    wrong: str
    right: str
    words: tuple[str, ...]


class Project(NamedTuple):
    """A published project and its faults."""

    name: str
    requirement: str
    packages: tuple[str, ...]
    """What its checks need."""
    faults: tuple[Fault, ...]


class Row(NamedTuple):
    """What became of the attempts at one fault: whether each was verified, or None if it was not made."""

    project: str
    fault: str
    first: bool | None
    second_with: bool | None
    second_without: bool | None


def projects_of(text: str) -> tuple[Project, ...]:
    """Return the projects that a document of faults describes."""
    return tuple(
        Project(
            name,
            said["requirement"],
            tuple(said["packages"]),
            tuple(
                Fault(fault, said["path"], each["old"], each["wrong"], each["right"], tuple(each["words"]))
                for fault, each in said["faults"].items()
            ),
        )
        for name, said in yaml.safe_load(text).items()
    )


def withheld(prompt: str) -> str:
    """Return a prompt without the sections of retry material."""
    for title in TITLES.values():
        section = rf"^### {re.escape(title)}\n\n<(data-?[0-9a-f]*)>\n.*?^</\1>$"
        prompt = re.sub(section, "", prompt, flags=re.MULTILINE | re.DOTALL)
    return prompt


class ReadingModel:
    """A model that knows only its mistakes and repairs, and what the request says."""

    def __init__(self, faults: Sequence[Fault], *, withhold: bool) -> None:
        self._faults, self._withhold = {fault.name: fault for fault in faults}, withhold

    def answer(self, body: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the tool that the model calls for a request, and its arguments."""
        prompt = "\n".join(_text(each) for each in body["messages"] if each["role"] in ("system", "user"))
        if self._withhold:
            prompt = withheld(prompt)
        tools = {tool["function"]["name"]: tool["function"] for tool in body.get("tools") or ()}
        submit = next(name for name in tools if name.startswith("submit"))
        if "dag" in json.dumps(tools[submit]["parameters"].get("properties", {})):
            return submit, _plan(re.findall(r"rework (\w+) in (\S+)", prompt))
        found = re.search(r"Rework (\w+) in ", prompt)
        fault = self._faults[found[1] if found else ""]
        if any(each["role"] == "tool" for each in body["messages"]):
            return submit, _walkthrough(fault, _test_command(prompt))
        new = fault.right if all(word in prompt for word in fault.words) else fault.wrong
        return "replace_string_in_file", {"path": fault.path, "old_string": fault.old, "new_string": new}


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def _plan(asked: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return a plan with one task for each place, none of which waits for another."""
    tasks, nodes = [], []
    for number, (name, path) in enumerate(dict.fromkeys(asked), start=1):
        same = {"id": f"task-{number:03}", "dependencies": [], "status": "PENDING"}
        about = {"title": f"Rework {name}", "type": 2, "acceptance_criteria": [_CRITERION], "test_waiver": _WAIVER}
        body = {"estimated_complexity": "small", "body": _TASK.format(name=name, path=path)}
        tasks.append({**same, **about, **body, "branch": None, "attemptId": None})
        nodes.append({**same, "type": "task", "agentType": 2})
    dag = {"nodes": nodes, "metadata": {"totalTasks": len(nodes), "totalRefineries": 0}}
    return {"specs": [], "tasks": tasks, "dag": dag, "assumptions": [], "open_questions": []}


def _test_command(prompt: str) -> str:
    """Return the command that runs the tests, from the list of commands in a prompt."""
    listed = prompt.partition("### How the command of a criterion may begin")[2].partition("\n</data")[0]
    lines = [line.removeprefix("- ") for line in listed.splitlines()]
    return next(line for line in lines if line.endswith(("pytest", "unittest")))


def _walkthrough(fault: Fault, command: str) -> dict[str, Any]:
    files = [{"path": fault.path, "reason": f"rework {fault.name}"}]
    said = {"status": "completed", "confidence": 0.9, "time_spent_minutes": 1, "files_changed": files}
    judged = [{"criterion": _CRITERION, "command": command}]
    return {"walkthrough": {**said, "evidence": judged, "body": _WALKTHROUGH}}


@contextmanager
def serving(model: ReadingModel) -> Iterator[str]:
    """Serve a model on loopback as an OpenAI-compatible provider; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

        def do_POST(self) -> None:
            """Answer a request for a completion, as a stream if it asks for one."""
            raw = self.rfile.read(int(self.headers["content-length"]))
            body = json.loads(raw)
            streams = bool(body.get("stream"))
            data = _completion(body, *model.answer(body), streams=streams, size=len(raw))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream" if streams else "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def _completion(body: Mapping[str, Any], tool: str, args: Mapping[str, Any], *, streams: bool, size: int) -> bytes:
    """Return one tool call as the response of a provider."""
    call = {"id": f"call_{size}", "type": "function", "function": {"name": tool, "arguments": json.dumps(args)}}
    used = {"prompt_tokens": size // 4, "completion_tokens": 50, "total_tokens": size // 4 + 50}
    head = {"id": "experiment", "created": 0, "model": body.get("model")}
    if not streams:
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choices = [{"index": 0, "message": message, "finish_reason": "tool_calls"}]
        return json.dumps({**head, "object": "chat.completion", "choices": choices, "usage": used}).encode()
    delta = {"role": "assistant", "content": None, "tool_calls": [{"index": 0, **call}]}
    ends: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": used},
    ]
    chunks = [json.dumps({**head, "object": "chat.completion.chunk", **end}) for end in ends]
    return "".join(f"data: {chunk}\n\n" for chunk in (*chunks, "[DONE]")).encode()


class Ground(NamedTuple):
    """A repository of a project, and the home folder of the person who works in it."""

    repository: Path
    home: Path

    def settings(self, address: str) -> None:
        """Write the settings of the person: the model, and two attempts."""
        own = self.home / ".config" / "fairwitness" / "fairwitness.toml"
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(
            '[agents]\ndefault = "experiment"\n[agents.backend.experiment]\nprovider = "openai"\n'
            f'base_url = "{address}"\nmodel = "experiment"\n[forge]\nmax_attempts = 2\ncap = 4\n'
        )

    def run(self, faults: Sequence[Fault], *, withhold: bool) -> dict[str, dict[int, bool]]:
        """Return for each fault whether its attempts were verified."""
        request = "Do these: " + "; ".join(f"rework {fault.name} in {fault.path} " for fault in faults)
        with serving(ReadingModel(faults, withhold=withhold)) as address:
            self.settings(address)
            environ = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "XDG_"))}
            own = {**environ, **_GIT, "HOME": str(self.home), "OPENAI_API_KEY": "none"}
            self._call(own, (0, 4), "forge", request, "--plan-only")
            self._call(own, (0,), "plan", "approve")  # the plan waives new tests: that counts if a person approves it
            printed = self._call(own, (0, 1), "resume", "--jsonl")
        return _outcomes(faults, printed)

    def _call(self, environ: Mapping[str, str], ends: tuple[int, ...], *arguments: str) -> str:
        command = [str(Path(sys.executable).with_name("fairwitness")), *arguments]
        done = subprocess.run(command, cwd=self.repository, env=environ, capture_output=True, text=True, check=False)
        if done.returncode not in ends:
            said = f"{done.stderr[-2000:]}{done.stdout[-2000:]}"
            raise RuntimeError(f"{arguments[0]} ended with {done.returncode}: {said}")
        return done.stdout


def _outcomes(faults: Sequence[Fault], printed: str) -> dict[str, dict[int, bool]]:
    ends: dict[str, dict[int, bool]] = {fault.name: {} for fault in faults}
    names = {f"task-{number:03}": fault.name for number, fault in enumerate(faults, start=1)}
    for line in filter(None, printed.splitlines()):
        event = json.loads(line)
        data = event.get("data") or {}
        node, attempt = names.get(str(data.get("nodeId"))), int(data.get("attemptId") or 0)
        if node is not None and event.get("type") == "task.verified":
            ends[node][attempt] = True
        elif node is not None and event.get("type") == "node.changed" and data["newStatus"] == "FAILED":
            if "no evidence" in str(data.get("reason")):
                raise RuntimeError(f"the checks of {node} proved nothing: {data['reason']}")
            ends[node].setdefault(attempt, False)
    return ends


def compare(project: str, ground: Ground, faults: Sequence[Fault]) -> tuple[Row, ...]:
    """Run the faults of a project without the material and with it."""
    without = ground.run(faults, withhold=True)
    told = ground.run(faults, withhold=False)
    return tuple(
        Row(project, fault.name, told[fault.name].get(1), told[fault.name].get(2), without[fault.name].get(2))
        for fault in faults
    )


def repository_of(folder: Path, files: Path) -> Path:
    """Make a repository of the files of a project, as published."""
    shutil.copytree(files, folder, dirs_exist_ok=True)
    everything = ("add", "-A", "-f", "--", ".", ":!.venv")
    for arguments in (("init", "-q", "-b", "main"), everything, ("commit", "-qm", "as published")):
        subprocess.run(["git", *arguments], cwd=folder, env={**os.environ, **_GIT}, check=True)
    (folder / ".git" / "info" / "exclude").write_text(".venv/\n")
    return folder


def _fetched(project: Project, folder: Path) -> Ground:
    """Fetch a project from the registry and prepare an environment with pytest beside its files."""
    repository, sources = folder / "repository", folder / "sdist"
    subprocess.run([sys.executable, "-m", "venv", str(repository / ".venv")], check=True)
    pip = [str(repository / ".venv" / "bin" / "python"), "-m", "pip", "--quiet"]
    subprocess.run([*pip, "install", *project.packages], check=True)
    download = ["download", "--no-deps", "--no-binary", ":all:", "-d", str(sources), project.requirement]
    subprocess.run([*pip, *download], check=True)
    (archive,) = sources.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(sources, filter="data")
    (files,) = (path for path in sources.iterdir() if path.is_dir())
    return Ground(repository_of(repository, files), folder / "home")


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table, with the sums."""
    words = {True: "succeeds", False: "fails", None: "not made"}
    lines = ["| project | fault | first attempt | second, with | second, without |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        ends = " | ".join(words[each] for each in (row.first, row.second_with, row.second_without))
        lines.append(f"| {row.project} | {row.fault} | {ends} |")
    sums = [sum(row[place] is True for row in rows) for place in (2, 3, 4)]
    lines.append(f"| all | {len(rows)} faults | {sums[0]} succeed | {sums[1]} succeed | {sums[2]} succeed |")
    return "\n".join(lines)


def main(names: Sequence[str]) -> int:
    """Run the experiment on all projects, or on those named; fail if the material does not help."""
    rows: list[Row] = []
    top = Path(tempfile.mkdtemp(prefix="fairwitness-retries-"))
    for project in projects_of(FAULTS.read_text()):
        if not names or project.name in names:
            rows += compare(project.name, _fetched(project, top / project.name), project.faults)
            sys.stdout.write(f"{table(rows)}\n\n")
            sys.stdout.flush()
    shutil.rmtree(top)
    helped = all(row.second_with for row in rows) and not any(row.second_without for row in rows)
    return 0 if helped else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
