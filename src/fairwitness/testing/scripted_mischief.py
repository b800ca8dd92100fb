"""The variants of the scripted agent: what an agent can do wrong, and a few things that it can do right.

Runs only beside the scripted agent, with the standard library only. Variables: SCRIPTED_WRITE,
SCRIPTED_READ, SCRIPTED_COMMAND (what is tried), SCRIPTED_OUTSIDE (a folder that must not be reached), SCRIPTED_CODE and
SCRIPTED_STOP (how it fails), SCRIPTED_MARK (stands in the command line of what it leaves running).
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairwitness.testing.scripted_agent import ScriptedAgent

Message = dict[str, Any]
_SLEEPS = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
_ONCE = {"optionId": "once", "name": "Once", "kind": "allow_once"}
_NO = {"optionId": "no", "name": "No", "kind": "reject_once"}
_FOREVER = {"optionId": "always", "name": "Always", "kind": "allow_always"}


def attempt(agent: "ScriptedAgent", name: str, act: Callable[[], Any]) -> None:
    """Try something and report its result."""
    try:
        found = act()
    except (OSError, subprocess.SubprocessError) as error:
        found = f"failed: {error}"
    except Exception as error:  # noqa: BLE001 -- the class of a refusal is in the other file
        found = f"refused: {error}"
    agent.report[name] = found


def _path(agent: "ScriptedAgent", variable: str, default: str) -> str:
    return os.path.join(agent.cwd, os.environ.get(variable, default))  # noqa: PTH118 -- pathlib is slow to load


def _target(agent: "ScriptedAgent") -> str:
    return _path(agent, "SCRIPTED_WRITE", "src/new.py")


def _start_child() -> None:
    mark = os.environ.get("SCRIPTED_MARK", "scripted-agent-child")
    subprocess.Popen([sys.executable, "-c", _SLEEPS, mark], start_new_session=True)


def answers(agent: "ScriptedAgent") -> Message:
    """Nothing but an answer."""
    return agent.finish()


def late(_agent: "ScriptedAgent") -> Message:
    """The answer comes after the end of the turn."""
    return {"result": {"stopReason": "end_turn"}}


def polite(agent: "ScriptedAgent") -> Message:
    """Leaves files and commands to the client, and asks before each."""
    wire, target = agent.wire, _target(agent)
    wire.say("I shall look around first.", "agent_thought_chunk")
    source = _path(agent, "SCRIPTED_READ", "README.md")
    attempt(agent, "read", lambda: wire.call("fs/read_text_file", path=source)["content"])
    attempt(agent, "part", lambda: wire.call("fs/read_text_file", path=source, line=2, limit=1)["content"])
    attempt(agent, "missing", lambda: wire.call("fs/read_text_file", path=f"{agent.cwd}/no-such-file")["content"])
    attempt(agent, "may_write", lambda: agent.permitted({"file_path": target, "content": "new = 1\n"}))
    attempt(agent, "write", lambda: wire.call("fs/write_text_file", path=target, content="new = 1\n"))
    line = os.environ.get("SCRIPTED_COMMAND", "git status")
    attempt(agent, "may_run", lambda: agent.permitted({"command": line}))
    attempt(agent, "run", lambda: agent.terminal(line))
    attempt(agent, "may_escape", lambda: agent.permitted({"file_path": "/etc/passwd", "content": ""}))
    attempt(agent, "escape", lambda: wire.call("fs/write_text_file", path=f"{agent.cwd}/../escaped", content=""))
    attempt(agent, "read_outside", lambda: wire.call("fs/read_text_file", path="/etc/passwd")["content"])
    return agent.finish()


def terminal_kill(agent: "ScriptedAgent") -> Message:
    """Starts a command, looks at it, and has it killed."""
    call = agent.wire.call
    number = call("terminal/create", command=os.environ["SCRIPTED_COMMAND"])["terminalId"]
    agent.report["running"] = call("terminal/output", terminalId=number)
    time.sleep(0.5)
    call("terminal/kill", terminalId=number)
    agent.report["killed"] = call("terminal/wait_for_exit", terminalId=number)
    call("terminal/release", terminalId=number)
    attempt(agent, "gone", lambda: call("terminal/output", terminalId=number))
    return agent.finish()


def terminal_left(agent: "ScriptedAgent") -> Message:
    """Starts a command and forgets about it."""
    agent.wire.call("terminal/create", command=os.environ["SCRIPTED_COMMAND"])
    time.sleep(0.5)
    return agent.finish()


def unasked(agent: "ScriptedAgent") -> Message:
    """Writes first and asks nobody."""
    attempt(agent, "write", lambda: agent.put(_target(agent)))
    return agent.finish()


def rogue(agent: "ScriptedAgent") -> Message:
    """Goes round the client in every way it can think of."""
    outside, git = os.environ.get("SCRIPTED_OUTSIDE", "/var/lib"), f"{agent.cwd}/.git"
    built = "/".join(["", *[part for part in outside.split("/") if part], "built"])
    code = "import os, sys; open(os.sep.join(sys.argv[1:]), 'w').write('x')"
    dial = "import socket; socket.create_connection(('1.1.1.1', 53), 2)"
    inside = "/config" if os.path.isdir(git) else ""  # noqa: PTH112 -- pathlib is slow to load
    tries: dict[str, Callable[[], Any]] = {
        "worktree": lambda: agent.put(_target(agent)),
        "dot_git": lambda: agent.put(git + inside),
        "replace_git": lambda: os.rename(git, f"{git}-old"),  # noqa: PTH104 -- as above
        "outside": lambda: agent.put(f"{outside}/rogue"),
        "built": lambda: agent.put(built),
        "built_by_shell": lambda: agent.run(sys.executable, "-c", code, *outside.split("/"), "shell"),
        "secrets": lambda: sorted(os.listdir(outside)),  # noqa: PTH208 -- as above
        "network": lambda: agent.run(sys.executable, "-c", dial),
    }
    for name, act in tries.items():
        attempt(agent, name, act)
    _start_child()
    return agent.finish()


def hang(agent: "ScriptedAgent") -> Message:
    """Waits for a word from the client, and stops when it is asked to."""
    _start_child()
    agent.wire.say("thinking", "agent_thought_chunk")
    while not agent.wire.is_cancelled:
        if agent.wire.read() is None:
            raise SystemExit(0)
    return {"result": {"stopReason": "cancelled"}}


def deaf(agent: "ScriptedAgent") -> Message:
    """Hears neither a cancel nor the end of its input."""
    _start_child()
    agent.wire.say("thinking", "agent_thought_chunk")
    while True:
        time.sleep(60)


def crash(agent: "ScriptedAgent") -> Message:
    """Ends in the middle of a turn, with a secret in its last words."""
    agent.wire.say("about to")
    sys.stderr.write(f"out of luck with {os.environ.get('SCRIPTED_TOKEN')}\n")
    sys.stderr.flush()
    os._exit(3)


def silent(_agent: "ScriptedAgent") -> Message:
    """Ends its turn without a word."""
    return {"result": {"stopReason": "end_turn"}}


def fails(_agent: "ScriptedAgent") -> Message:
    """Says that its model is not well."""
    return {"error": {"code": int(os.environ.get("SCRIPTED_CODE", "500")), "message": "the model is not well"}}


def stops(agent: "ScriptedAgent") -> Message:
    """Stops for a reason of its own."""
    agent.wire.say("that is all")
    return {"result": {"stopReason": os.environ.get("SCRIPTED_STOP", "max_tokens")}}


def gives_up(agent: "ScriptedAgent") -> Message:
    """A refusal ends its turn; asked again, it answers."""
    if agent.asked == 1 and not agent.permitted({"command": "curl example.org"}):
        return {"result": {"stopReason": "cancelled"}}
    return agent.finish()


def learns(agent: "ScriptedAgent") -> Message:
    """Its first answer is no good; in the same session the second is."""
    if agent.asked == 1:
        agent.wire.say("All done, trust me.")
        return {"result": {"stopReason": "end_turn"}}
    return agent.finish()


def kindless(agent: "ScriptedAgent") -> Message:
    """Asks without saying what for, or in ways that must not be trusted."""
    bare: Message = {"toolCallId": "bare"}
    located = {"toolCallId": "l", "kind": "read", "title": "Read a", "locations": [{"path": _path(agent, "", "a")}]}
    command = {"toolCallId": "x", "rawInput": {"command": "git status"}}
    asks = {
        "bare": (bare, [_ONCE, _NO]),
        "located": (located, [_ONCE, _NO]),
        "odd": ({"toolCallId": "o", "rawInput": "rm -rf /"}, [_ONCE, _NO]),
        "forever": (command, [_FOREVER]),
        "no_options": (command, []),
        "allowed": (command, [_FOREVER, _ONCE, _NO]),
    }
    for name, (call, options) in asks.items():
        answer = agent.wire.call("session/request_permission", toolCall=call, options=options)
        agent.report[name] = answer["outcome"].get("optionId", answer["outcome"]["outcome"])
    return agent.finish()


def big(agent: "ScriptedAgent") -> Message:
    """Sends frames of two hundred thousand signs."""
    call, target = agent.wire.call, _target(agent)
    agent.wire.say("x" * 200_000, "agent_thought_chunk")
    attempt(agent, "write", lambda: call("fs/write_text_file", path=target, content="y" * 200_000))
    attempt(agent, "read", lambda: len(call("fs/read_text_file", path=target)["content"]))
    return agent.finish()


def flood(_agent: "ScriptedAgent") -> Message:
    """One line without an end."""
    while True:
        sys.stdout.write("x" * (1 << 20))


def garbage(agent: "ScriptedAgent") -> Message:
    """All kinds of things that are no frames, or odd ones; and questions that nobody knows."""
    wire = agent.wire
    lines = ("[1, 2]", '"text"', "null", "{", "{}", '{"id": [1], "result": 1}', '{"method": 5}', "[" * 100_000)
    answers_to_nothing = ('{"id": 999, "result": {}}', '{"id": 998, "error": "no"}', '{"id": null, "result": 1}')
    for line in (*lines, *answers_to_nothing):
        wire.raw(line)
    wire.send({"method": "session/update", "params": "nothing"})
    wire.send({"method": "session/update", "params": {"update": {"sessionUpdate": "new_kind", "x": [None]}}})
    wire.send({"method": "$/progress", "params": {}})
    wire.update("tool_call", toolCallId=7, title=None, content="?", rawInput=3)
    wire.update("tool_call_update", toolCallId="t", status=["completed"], content=[None, 5], _meta=3)
    wire.update("agent_message_chunk", content="no object")
    wire.update("usage_update", cost={"amount": "much", "currency": "USD"})
    half = '{"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "half \\ud800 sign"}}'
    wire.raw('{"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s1", "update": ' + half + "}}")
    for method in ("fs/delete", "_secret/method", "elicitation/create", "mcp/connect", "terminal/output"):
        attempt(agent, method, lambda method=method: wire.call(method))  # type: ignore[misc]  # bound at once
    attempt(agent, "no_path", lambda: wire.call("fs/read_text_file", path=5))
    attempt(agent, "no_words", lambda: wire.call("terminal/create", command=["rm"], args="x"))
    attempt(agent, "two_commands", lambda: wire.call("terminal/create", command="git status; rm -rf ."))
    attempt(agent, "two_lines", lambda: wire.call("terminal/create", command="git status\nrm -rf ."))
    attempt(agent, "elsewhere", lambda: wire.call("terminal/create", command="git", args=["status"], cwd="/"))
    return agent.finish()


def hostile(agent: "ScriptedAgent") -> Message:
    """Follows the settings that a repository carries, unless it is told not to."""
    options = (agent.session.get("_meta") or {}).get("scripted", {})
    settings = f"{agent.cwd}/.scripted/settings.json"
    if options.get("repositorySettings", True):
        attempt(agent, "settings", lambda: json.loads(agent.get(settings)))
        told = agent.report["settings"]
        if isinstance(told, dict) and "hook" in told:
            attempt(agent, "hook", lambda: agent.run("/bin/sh", "-c", told["hook"]))
            attempt(agent, "write", lambda: agent.put(_target(agent)))
    agent.report["tools"] = options.get("tools")
    return agent.finish()


def shell(agent: "ScriptedAgent") -> Message:
    """Runs a line by itself, and asks nobody."""
    attempt(agent, "shell", lambda: agent.run("/bin/sh", "-c", os.environ["SCRIPTED_COMMAND"]))
    return agent.finish()


def submits(agent: "ScriptedAgent") -> Message:
    """Hands its answer in by the tool server that it was given; its first try is not good enough."""
    server = agent.session["mcpServers"][0]
    answer = json.loads(os.environ.get("SCRIPTED_ANSWER", '{"ok": true}'))
    asks: list[tuple[str, Message]] = [("initialize", {"protocolVersion": "2025-06-18"}), ("tools/list", {})]
    tries: tuple[Message, ...] = ({}, answer)
    asks += [("tools/call", {"name": "submit_result", "arguments": given}) for given in tries]
    lines = [json.dumps({"jsonrpc": "2.0", "id": n, "method": m, "params": p}) + "\n" for n, (m, p) in enumerate(asks)]
    argv = [server["command"], *server["args"]]
    done = subprocess.run(argv, input="".join(lines), stdout=subprocess.PIPE, text=True, timeout=60)
    replies = [json.loads(line)["result"] for line in done.stdout.splitlines()]
    agent.report["tool"] = replies[1]["tools"][0]["name"]
    agent.report["tries"] = [[reply["isError"], reply["content"][0]["text"]] for reply in replies[2:]]
    agent.wire.say(json.dumps(agent.report))
    return {"result": {"stopReason": "end_turn"}}


_ALL: tuple[Callable[["ScriptedAgent"], Message], ...] = (
    *(answers, late, polite, terminal_kill, terminal_left, unasked, rogue, hang, deaf, crash, silent, fails, stops),
    *(gives_up, learns, kindless, big, flood, garbage, hostile, shell, submits),
)
VARIANTS: dict[str, Callable[["ScriptedAgent"], Message]] = {
    **{function.__name__.replace("_", "-"): function for function in _ALL},
    # these differ before they are asked anything
    **dict.fromkeys(("banner", "other-version", "stuck-start", "options", "modeless"), answers),
}
