"""The named queries over the published tables; where rows supersede others, a query reads the latest one."""

from typing import NamedTuple


class Canned(NamedTuple):
    """A named query; `parameters` are the names of its values, in order."""

    name: str
    about: str
    columns: tuple[str, ...]
    sql: str
    parameters: tuple[str, ...] = ("run",)


_LATER = "CASE WHEN completed_at > started_at THEN completed_at ELSE started_at END"  # the clock may be set back
_SECONDS = f"(julianday({_LATER}) - julianday(started_at)) * 86400"

# An update is pending while no later row of the same run, file and summary says that it was applied.
_PENDING = (
    "applied = 0 AND NOT EXISTS (SELECT 1 FROM instruction_updates later WHERE later.run_id = u.run_id "
    "AND later.file_path = u.file_path AND later.change_summary = u.change_summary AND later.applied = 1 "
    "AND later.id > u.id)"
)

QUERIES: tuple[Canned, ...] = (
    Canned(
        "dispatch-count",
        "how many agent calls the run made",
        ("dispatches",),
        "SELECT COUNT(*) FROM pipeline_telemetry WHERE run_id = ?",
    ),
    Canned(
        "timing",
        "how long each agent call took",
        ("step", "agent", "instance", "status", "duration_s"),
        f"SELECT step, agent, instance, status, {_SECONDS} AS duration_s "
        "FROM pipeline_telemetry WHERE run_id = ? ORDER BY started_at, id",
    ),
    Canned(
        "slowest-steps",
        "the three steps that took longest",
        ("step", "total_s"),
        f"SELECT step, SUM({_SECONDS}) AS total_s FROM pipeline_telemetry WHERE run_id = ? "
        "GROUP BY step ORDER BY total_s DESC LIMIT 3",
    ),
    Canned(
        "retries",
        "agents that had to be asked again",
        ("agent", "instance", "retry_count"),
        "SELECT agent, instance, retry_count FROM pipeline_telemetry WHERE run_id = ? AND retry_count > 0 ORDER BY id",
    ),
    Canned(
        "failed-steps",
        "agent calls that ended in ERROR or TIMEOUT",
        ("step", "agent", "status", "notes"),
        "SELECT step, agent, status, notes FROM pipeline_telemetry "
        "WHERE run_id = ? AND status IN ('ERROR', 'TIMEOUT') ORDER BY id",
    ),
    Canned(
        "evaluations",
        "what agents thought of the documents they worked from",
        ("evaluator_agent", "evaluations", "avg_useful", "avg_clarity"),
        "SELECT evaluator_agent, COUNT(*), AVG(usefulness_score) AS avg_useful, AVG(clarity_score) AS avg_clarity "
        "FROM artifact_evaluations WHERE run_id = ? GROUP BY evaluator_agent ORDER BY evaluator_agent",
    ),
    Canned(
        "worst-artifacts",
        "the five documents rated least useful",
        ("artifact_path", "avg_useful", "avg_clarity"),
        "SELECT artifact_path, AVG(usefulness_score) AS avg_useful, AVG(clarity_score) AS avg_clarity "
        "FROM artifact_evaluations WHERE run_id = ? GROUP BY artifact_path ORDER BY avg_useful, artifact_path LIMIT 5",
    ),
    Canned(
        "missing-information",
        "what evaluators could not find",
        ("artifact_path", "missing_information"),
        "SELECT artifact_path, missing_information FROM artifact_evaluations "
        "WHERE run_id = ? AND missing_information IS NOT NULL AND missing_information <> '' ORDER BY id",
    ),
    Canned(
        "instruction-updates",
        "the governed changes of the run",
        ("id", "agent", "file_path", "change_type", "change_summary", "applied", "ts"),
        "SELECT id, agent, file_path, change_type, change_summary, applied, ts FROM instruction_updates "
        "WHERE run_id = ? ORDER BY ts, id",
    ),
    Canned(
        "instruction-frequency",
        "how often each instruction file was to be changed, over all runs",
        ("file_path", "update_count"),
        "SELECT file_path, COUNT(*) AS update_count FROM instruction_updates "
        "GROUP BY file_path ORDER BY update_count DESC, file_path",
        (),
    ),
    Canned(
        "instruction-pending",
        "changes that were proposed and not applied, over all runs",
        ("run_id", "file_path", "change_type", "change_summary", "ts"),
        "SELECT run_id, file_path, change_type, change_summary, ts FROM instruction_updates u "
        f"WHERE {_PENDING} ORDER BY id",
        (),
    ),
    Canned(
        "instruction-state",
        "how many changes were applied and how many are pending, over all runs",
        ("applied", "pending"),
        f"SELECT COALESCE(SUM(applied), 0), COALESCE(SUM(CASE WHEN {_PENDING} THEN 1 ELSE 0 END), 0) "
        "FROM instruction_updates u",
        (),
    ),
    Canned(
        "instruction-history",
        "everything that happened to one instruction file",
        ("run_id", "agent", "change_type", "change_summary", "applied", "ts"),
        "SELECT run_id, agent, change_type, change_summary, applied, ts FROM instruction_updates "
        "WHERE file_path = ? ORDER BY id",
        ("file",),
    ),
    Canned(
        "checks",
        "every check of the run with its source",
        ("id", "task_id", "phase", "round", "check_name", "instance", "passed", "verdict", "provenance"),
        "SELECT c.id, c.task_id, c.phase, c.round, c.check_name, c.instance, c.passed, c.verdict, s.provenance "
        "FROM anvil_checks c LEFT JOIN check_sources s ON s.check_id = c.id WHERE c.run_id = ? ORDER BY c.id",
    ),
    Canned(
        "approvals",
        "who decided what at which gate",
        ("gate_id", "timestamp", "mode", "selected_option", "auto_selected", "actor"),
        "SELECT gate_id, timestamp, mode, selected_option, auto_selected, actor FROM approvals "
        "WHERE run_id = ? ORDER BY id",
    ),
)

BY_NAME = {query.name: query for query in QUERIES}
