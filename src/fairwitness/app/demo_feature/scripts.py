"""How a recorded session is written down: turns with their calls, and the signed document at the end."""

from dataclasses import dataclass
from typing import Any

from fairwitness.app.demo_feature.repository import LAYOUT, MOMENT
from fairwitness.contracts.common.completion import Agent
from fairwitness.contracts.common.tools import Role, Tool
from fairwitness.contracts.common.words import Risk, Severity, Status

Document = dict[str, Any]
"""An answer as plain values."""
RUN_ID = MOMENT
"""Stands where a run's id belongs: no recording can know it, and the harness fills in its own."""


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a tool."""

    tool: Tool
    args: dict[str, str]


@dataclass(frozen=True, slots=True)
class Said:
    """One turn before the last: some words, and what is done with them."""

    text: str
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Session:
    """One dispatch: the n-th of a role under a name."""

    role: Role
    instance: str
    number: int
    answer: Document
    last_words: str
    turns: tuple[Said, ...] = ()


def read(*paths: str) -> tuple[Call, ...]:
    """Looks at files."""
    return tuple(Call(Tool.READ_FILE, {"path": path}) for path in paths)


def create(path: str, content: str) -> Call:
    """Writes a whole file."""
    return Call(Tool.CREATE_FILE, {"path": path, "content": content})


def replace(path: str, change: tuple[str, str]) -> Call:
    """Changes one place of a file."""
    old, new = change
    return Call(Tool.REPLACE_STRING, {"path": path, "old_string": old, "new_string": new})


def signed(
    agent: Agent,
    step: str,
    payload: Document,
    summary: str,
    *,
    output: str,
    instance: str = "",
    status: Status = Status.DONE,
    severity: Severity | None = None,
    findings: int = 0,
    risk: Risk | None = None,
    evidence: Document | None = None,
) -> Document:
    """A document with header and completion; what only the harness knows stands there as a valid placeholder."""
    header = {
        "agent": agent.value,
        "instance": instance or agent.value,
        "step": step,
        "started_at": MOMENT,
        "completed_at": MOMENT,
        "schema_version": "1.0",
    }
    completion: Document = {
        "status": status.value,
        "summary": summary,
        "severity": severity.value if severity else None,
        "findings_count": findings,
        "risk_level": risk.value if risk else None,
        "output_paths": [output],
    }
    if evidence is not None:
        completion["evidence_summary"] = evidence
    return {"agent_output": {**header, "payload": payload}, "completion": completion}


def rated(path: str, useful: int, clear: int, *, missing: str = "", impact: str = "") -> Document:
    """What an agent thought of a document of this run."""
    remarks = {"missing_information": missing, "impact_on_work": impact}
    return {
        "artifact_path": f"{LAYOUT.folder}/{path}",
        "usefulness_score": useful,
        "clarity_score": clear,
        **{name: text for name, text in remarks.items() if text},
    }
