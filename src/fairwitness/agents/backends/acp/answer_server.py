"""A tool server with one tool, which takes an agent's answer; the agent runs it inside its sandbox.

This file runs alone, with the standard library only: `python -I -S answer_server.py SCHEMA ANSWER`. SCHEMA is the JSON
Schema of the answer, ANSWER the file that it is written to. It speaks the Model Context Protocol, one JSON object a
line. It checks an answer only roughly, so that the agent learns of a slip at once; the answer is validated outside the
agent's reach.
"""

import json
import os
import sys
from typing import Any

TOOL = "submit_result"
SERVER = "fairwitness"
_WORDS = "Hands in the answer. Call it once, when everything is done."
_KINDS: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "number": (int, float),
    "integer": int,
}


def main(schema_path: str, answer_path: str) -> int:
    """Serve requests until the agent closes its end."""
    schema = json.loads(os.read(handle := os.open(schema_path, os.O_RDONLY), 16 << 20))
    os.close(handle)
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict) and "id" in message and isinstance(message.get("method"), str):
            reply = {"jsonrpc": "2.0", "id": message["id"], **_answer(message, schema, answer_path)}
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()
    return 0


def _answer(message: dict[str, Any], schema: dict[str, Any], answer_path: str) -> dict[str, Any]:
    method, params = message["method"], message.get("params")
    params = params if isinstance(params, dict) else {}
    if method == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        server = {"name": SERVER, "version": "1"}
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}}
    if method == "tools/list":
        return {"result": {"tools": [{"name": TOOL, "description": _WORDS, "inputSchema": schema}]}}
    if method == "tools/call" and params.get("name") == TOOL:
        problem = _problem(schema, params.get("arguments"))
        if problem is None:
            _store(answer_path, params["arguments"])
        said = "received" if problem is None else f"not taken: {problem}"
        return {"result": {"content": [{"type": "text", "text": said}], "isError": problem is not None}}
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": "there is no such method"}}


def _problem(schema: dict[str, Any], answer: Any) -> str | None:
    """Return the first problem with the top-level fields of an answer, or None."""
    if not isinstance(answer, dict):
        return "it is not an object"
    missing = [name for name in schema.get("required", ()) if name not in answer]
    if missing:
        return f"it lacks {', '.join(missing)}"
    for name, value in answer.items():
        kind = schema.get("properties", {}).get(name, {}).get("type")
        wanted = _KINDS.get(kind) if isinstance(kind, str) else None
        if wanted is not None and (not isinstance(value, wanted) or (isinstance(value, bool) and kind != "boolean")):
            return f"{name} must be of type {kind}"
    return None


def _store(path: str, answer: Any) -> None:
    """Write the answer and rename it into place, so that a partial answer is never read."""
    handle = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        data = memoryview(json.dumps(answer).encode())
        while data:
            data = data[os.write(handle, data) :]
    finally:
        os.close(handle)
    os.rename(f"{path}.new", path)  # noqa: PTH104 -- importing pathlib would take longer than all else here


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
