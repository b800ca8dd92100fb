"""An agent for tests that speaks the Agent Client Protocol: it does what a model says, or misbehaves.

This file and its neighbour also run alone, with the standard library only: `python -I -S agent.py works`. `works`
delegates files and commands to the client, `asks` asks for permission and then acts itself, `acts` does not ask; all
other variants are in `scripted_mischief`. Variables: SCRIPTED_URL, SCRIPTED_TOKEN, SCRIPTED_MODEL (where the model is),
SCRIPTED_ANSWER (the JSON answer of misbehaving variants), SCRIPTED_MARK (in the command line of what it starts).
"""

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairwitness.contracts.agents.profile import AgentProfile

Message = dict[str, Any]
OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "once", "name": "Once", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
_PATH = {"path": {"type": "string"}}
_TOOLS = {
    "read_file": _PATH,
    "write_file": {**_PATH, "content": {"type": "string"}},
    "edit_file": {**_PATH, "old_string": {"type": "string"}, "new_string": {"type": "string"}},
    "shell": {"command": {"type": "string"}},
}
_MODES: dict[str, Message] = {
    "": {
        "modes": {"currentModeId": "free", "availableModes": [{"id": mode, "name": mode} for mode in ("ask", "free")]}
    },
    "options": {"configOptions": [{"id": "how", "category": "mode", "type": "select", "currentValue": "free"}]},
    "modeless": {},
}
_CALLS = 100
_LOOPS = ("works", "asks", "acts")


class ClientRefused(Exception):
    """The client refused a request or failed."""


class Wire:
    """Reads and writes frames."""

    def __init__(self) -> None:
        self.number = 0
        self.is_cancelled = False

    def send(self, message: Message) -> None:
        """Send a frame."""
        self.raw(json.dumps({"jsonrpc": "2.0", **message}))

    def raw(self, line: str) -> None:
        """Send any line."""
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def read(self) -> Message | None:
        """Return the next frame; None at the end."""
        line = sys.stdin.readline()
        if not line:
            return None
        message: Message = json.loads(line)
        self.is_cancelled = self.is_cancelled or message.get("method") == "session/cancel"
        return message

    def call(self, method: str, **params: Any) -> Message:
        """Asks the client something; `ClientRefused` if it says no."""
        self.number += 1
        number = f"ours-{self.number}"
        self.send({"id": number, "method": method, "params": {"sessionId": "s1", **params}})
        while True:
            message = self.read()
            if message is None:
                raise SystemExit(4)
            if message.get("id") == number and "method" not in message:
                if "error" in message:
                    raise ClientRefused(str(message["error"].get("message")))
                return message["result"] or {}

    def update(self, kind: str, **fields: Any) -> None:
        """Send an update to the client."""
        update = {"sessionUpdate": kind, **fields}
        self.send({"method": "session/update", "params": {"sessionId": "s1", "update": update}})

    def say(self, text: str, kind: str = "agent_message_chunk") -> None:
        """Send a text in chunks, as a model does."""
        size = 40 if len(text) < 4000 else len(text)
        for start in range(0, len(text), size):
            self.update(kind, content={"type": "text", "text": text[start : start + size]})


class ScriptedAgent:
    """The scripted agent."""

    def __init__(self, variant: str, variants: Message) -> None:
        self.variant = variant
        self.wire = Wire()
        self.cwd = ""
        self.session: Message = {}
        self.asked = 0
        self.calls = 0
        self.report: Message = {}
        """What it did, and what was refused."""
        self._variants = variants
        self._messages: list[Message] = []
        self._server: ToolServer | None = None

    def serve(self) -> None:
        """Answer requests until the client closes its end."""
        while (message := self.wire.read()) is not None:
            if "id" in message and "method" in message:
                result = self._answer(message["method"], message.get("params") or {})
                self.wire.send({"id": message["id"], **result})
                if self.variant == "late" and message["method"] == "session/prompt":
                    self.finish()

    def _answer(self, method: str, params: Message) -> Message:
        if method == "initialize":
            if self.variant == "banner":
                self.wire.raw("Welcome to the agent!\n\x1b[31mpress any key\x1b[0m")
            version = 7 if self.variant == "other-version" else 1
            return {"result": {"protocolVersion": version, "agentInfo": {"name": "scripted", "version": "1.0"}}}
        if method == "session/new":
            if self.variant == "stuck-start":
                sys.stdin.read()
            self.cwd, self.session = params["cwd"], params
            if params["mcpServers"] and self.variant in _LOOPS:
                self._server = ToolServer(params["mcpServers"][0])
            return {"result": {"sessionId": "s1", **_MODES.get(self.variant, _MODES[""])}}
        if method in ("session/set_mode", "session/set_config_option"):
            self.report["mode"] = params.get("modeId") or f"{params['configId']}={params['value']}"
            return {"result": {}}
        if method == "authenticate":
            self.report["authenticated"] = params["methodId"]
            return {"result": {}}
        if method == "session/prompt":
            self.asked += 1
            self.report["asked"] = self.asked
            if self.variant in _LOOPS:
                return self._work(params["prompt"][0]["text"])
            answer: Message = self._variants[self.variant](self)
            return answer
        return {"error": {"code": -32601, "message": "unknown"}}

    # with a model

    def _work(self, prompt: str) -> Message:
        """Do what the model says until it makes no more calls."""
        self._messages.append({"role": "user", "content": prompt})
        used = [0, 0]
        for _ in range(_CALLS):
            status, said = self._ask_model()
            if status != 200:
                return {"error": {"code": status, "message": json.dumps(said)[:500]}}
            message = said["choices"][0]["message"]
            used = [used[0] + said["usage"]["prompt_tokens"], used[1] + said["usage"]["completion_tokens"]]
            self._messages.append(message)
            for call in message.get("tool_calls") or ():
                result = self._carry_out(call["function"]["name"], call["function"]["arguments"])
                self._messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
            if not message.get("tool_calls"):
                self.wire.say(message.get("content") or "")
                break
        tokens = {"inputTokens": used[0], "outputTokens": used[1], "totalTokens": sum(used)}
        return {"result": {"stopReason": "end_turn", "usage": tokens}}

    def _ask_model(self) -> tuple[int, Message]:
        import http.client

        tools = [
            _offer(name, {"type": "object", "properties": given, "required": [*given]})
            for name, given in _TOOLS.items()
        ]
        if self._server is not None:
            tools.append(_offer("submit_result", self._server.schema))
        host = os.environ["SCRIPTED_URL"].removeprefix("http://")
        connection = http.client.HTTPConnection(host)
        headers = {"Authorization": "Bearer " + os.environ["SCRIPTED_TOKEN"], "Content-Type": "application/json"}
        body = {"model": os.environ["SCRIPTED_MODEL"], "messages": self._messages, "tools": tools}
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        except (OSError, ValueError, http.client.HTTPException) as error:
            return 503, {"error": str(error)}

    def _carry_out(self, name: str, given: str) -> str:
        try:
            args = json.loads(given)
            if name == "submit_result" and self._server is not None:
                return self._server.submit(args)
            if name not in _TOOLS:
                return f"there is no tool {name}"
            if "path" in args:
                args["path"] = os.path.join(self.cwd, args["path"])  # noqa: PTH118 -- pathlib is slow to load
            if self.variant != "acts" and not self.permitted(args, title=name):
                return "refused"
            return self._delegated(name, args) if self.variant == "works" else self._acted(name, args)
        except (ClientRefused, OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError) as error:
            return f"failed: {error}"

    def _delegated(self, name: str, args: Message) -> str:
        if name == "shell":
            return json.dumps(self.terminal(args["command"]))
        if name == "write_file":
            self.wire.call("fs/write_text_file", path=args["path"], content=args["content"])
            return "written"
        text: str = self.wire.call("fs/read_text_file", path=args["path"])["content"]
        if name == "edit_file":
            changed = text.replace(args["old_string"], args["new_string"], 1)
            self.wire.call("fs/write_text_file", path=args["path"], content=changed)
            return "edited"
        return text

    def _acted(self, name: str, args: Message) -> str:
        if name == "shell":
            return self.run("/bin/sh", "-c", args["command"])
        if name == "write_file":
            return self.put(args["path"], args["content"], os.O_TRUNC)
        text = self.get(args["path"])
        if name == "edit_file":
            return self.put(args["path"], text.replace(args["old_string"], args["new_string"], 1), os.O_TRUNC)
        return text

    # what it can do

    def permitted(self, raw: Message, **call: Any) -> bool:
        """Ask for permission and return whether it was given."""
        self.calls += 1
        told = {"toolCallId": f"c{self.calls}", "rawInput": raw, "title": "a call", **call}
        self.wire.update("tool_call", **{"status": "pending", **told})
        answer = self.wire.call("session/request_permission", toolCall=told, options=OPTIONS)
        is_allowed = answer["outcome"].get("optionId") == "once"
        status = "completed" if is_allowed else "failed"
        self.wire.update("tool_call_update", toolCallId=told["toolCallId"], status=status, rawOutput=status)
        return bool(is_allowed)

    def terminal(self, line: str) -> Message:
        """Let the client run a command."""
        number = self.wire.call("terminal/create", command=line)["terminalId"]
        ended = self.wire.call("terminal/wait_for_exit", terminalId=number)
        output = self.wire.call("terminal/output", terminalId=number)
        self.wire.call("terminal/release", terminalId=number)
        return {"code": ended.get("exitCode"), "output": output["output"][:500]}

    def get(self, path: str) -> str:
        """Read a file without the client."""
        handle = os.open(path, os.O_RDONLY)
        try:
            return os.read(handle, 1 << 20).decode()
        finally:
            os.close(handle)

    def put(self, path: str, text: str = "rogue\n", how: int = os.O_APPEND) -> str:
        """Write a file without the client."""
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o644)
        try:
            os.write(handle, text.encode())
        finally:
            os.close(handle)
        return "written"

    def run(self, *argv: str) -> str:
        """Run a command without the client."""
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.cwd, timeout=300)
        return done.stdout.decode(errors="replace")[:2000] + f"\nexit code {done.returncode}"

    def finish(self) -> Message:
        """Send the report and an answer, and end the turn."""
        answer = json.loads(os.environ.get("SCRIPTED_ANSWER", '{"ok": true}'))
        self.wire.say(
            f"Report:\n```json\n{json.dumps(self.report)}\n```\nAnswer:\n```json\n{json.dumps(answer)}\n```\n"
        )
        usage = {"inputTokens": 1000, "outputTokens": 50, "totalTokens": 1050}
        return {"result": {"stopReason": "end_turn", "usage": usage}}


class ToolServer:
    """The tool server that the client passed."""

    def __init__(self, told: Message) -> None:
        argv = [told["command"], *told["args"]]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.call("initialize", {"protocolVersion": "2025-06-18"})
        self.schema = self.call("tools/list", {})["tools"][0]["inputSchema"]

    def call(self, method: str, params: Message) -> Message:
        """Send a request and return its result."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n")
        self._process.stdin.flush()
        result: Message = json.loads(self._process.stdout.readline())["result"]
        return result

    def submit(self, answer: Message) -> str:
        """Submit an answer."""
        return str(self.call("tools/call", {"name": "submit_result", "arguments": answer})["content"][0]["text"])


def _offer(name: str, schema: Message) -> Message:
    return {"type": "function", "function": {"name": name, "description": name, "parameters": schema}}


def scripted_profile(variant: str, **changes: Any) -> "AgentProfile":
    """Return the profile of the agent: Python runs its file, which is written into its home."""
    from pathlib import Path

    from fairwitness.contracts.agents.dispatch import EnforcementTier
    from fairwitness.contracts.agents.model import ApiDialect
    from fairwitness.contracts.agents.profile import AgentProfile, HomeFile, RoleKind, UsageFrom, UsageWay
    from fairwitness.contracts.common.tools import Tool
    from fairwitness.sandbox.scratch import interpreter

    names = {"agent.py": "scripted_agent.py", "mischief.py": "scripted_mischief.py"}
    files = {name: Path(__file__).with_name(source).read_text() for name, source in names.items()}
    env = {"SCRIPTED_URL": "{url}", "SCRIPTED_TOKEN": "{token}", "SCRIPTED_MODEL": "{model}", **changes.pop("env", {})}
    facts: dict[str, Any] = {
        "name": "scripted",
        "title": "The scripted agent",
        "program": interpreter(),
        "args": ("-I", "-S", "{home}/agent.py", variant),
        "package": "fairwitness",
        "install": "pip install fairwitness",
        "tested": ("1.0",),
        "dialect": ApiDialect.OPENAI_CHAT,
        "env": env,
        "files": tuple(HomeFile(path=name, text=text) for name, text in files.items()),
        "modes": {RoleKind.BUILD: "ask", RoleKind.READ: "ask"},
        "tools": {
            "read_file": Tool.READ_FILE,
            "write_file": Tool.CREATE_FILE,
            "edit_file": Tool.REPLACE_STRING,
            "shell": Tool.RUN_IN_TERMINAL,
        },
        "usage": UsageWay(found=UsageFrom.RESPONSE),
        "tier": {"works": EnforcementTier.B, "asks": EnforcementTier.C}.get(variant, EnforcementTier.D),
    }
    return AgentProfile(**(facts | changes))


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 -- pathlib is slow to load
    ScriptedAgent(sys.argv[1], getattr(__import__("mischief"), "VARIANTS")).serve()  # noqa: B009 -- it is known only here
