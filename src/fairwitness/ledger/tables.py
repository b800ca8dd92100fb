"""The tables of the evidence database: the four published ones, unchanged, and Fair Witness's own.

Any tool that reads the published schema can read these four. What they cannot express (the source of a check, what was
run, in which order rows were committed) is in Fair Witness's own tables. No row is ever updated or deleted; triggers
enforce that, and that only a review has a verdict.
"""

from typing import NamedTuple

from fairwitness.db.base import SqlDialect, Transaction
from fairwitness.ledger.summary import rebuild_summary

ANVIL_CHECKS = """
CREATE TABLE IF NOT EXISTS anvil_checks (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id         TEXT    NOT NULL,
  task_id        TEXT,
  phase          TEXT    NOT NULL CHECK (phase IN ('baseline','after','review')),
  check_name     TEXT    NOT NULL,
  tool           TEXT,
  command        TEXT,
  exit_code      INTEGER,
  output_snippet TEXT    CHECK (LENGTH(output_snippet) <= 500),
  passed         INTEGER NOT NULL CHECK (passed IN (0, 1)),
  verdict        TEXT    CHECK (verdict IN ('approve','needs_revision','blocker')),
  severity       TEXT    CHECK (severity IN ('Blocker','Critical','Major','Minor')),
  round          INTEGER DEFAULT 1,
  instance       TEXT,
  ts             TEXT    NOT NULL DEFAULT (datetime('now'))
)
"""

PIPELINE_TELEMETRY = """
CREATE TABLE IF NOT EXISTS pipeline_telemetry (
  id             INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id         TEXT    NOT NULL,
  step           TEXT    NOT NULL,
  agent          TEXT    NOT NULL,
  instance       TEXT,
  started_at     TEXT    NOT NULL,
  completed_at   TEXT,
  status         TEXT    CHECK (status IN ('DONE','NEEDS_REVISION','ERROR','TIMEOUT')),
  dispatch_count INTEGER DEFAULT 1,
  retry_count    INTEGER DEFAULT 0,
  notes          TEXT    CHECK (LENGTH(notes) <= 1000),
  ts             TEXT    NOT NULL DEFAULT (datetime('now'))
)
"""

ARTIFACT_EVALUATIONS = """
CREATE TABLE IF NOT EXISTS artifact_evaluations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    evaluator_agent TEXT NOT NULL,
    evaluator_instance TEXT,
    artifact_path TEXT NOT NULL CHECK (artifact_path NOT LIKE '../%' AND artifact_path NOT LIKE '/%'),
    usefulness_score INTEGER NOT NULL CHECK (usefulness_score BETWEEN 1 AND 10),
    clarity_score INTEGER NOT NULL CHECK (clarity_score BETWEEN 1 AND 10),
    missing_information TEXT CHECK (LENGTH(missing_information) <= 2000),
    inaccuracies TEXT CHECK (LENGTH(inaccuracies) <= 2000),
    impact_on_work TEXT CHECK (LENGTH(impact_on_work) <= 2000),
    ts TEXT NOT NULL DEFAULT (datetime('now'))
)
"""

INSTRUCTION_UPDATES = """
CREATE TABLE IF NOT EXISTS instruction_updates (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    file_path TEXT NOT NULL CHECK (
        file_path LIKE '.github/instructions/%'
        OR file_path = '.github/copilot-instructions.md'
    ),
    change_type TEXT NOT NULL CHECK (change_type IN ('create', 'append', 'modify', 'delete')),
    change_summary TEXT NOT NULL CHECK (LENGTH(change_summary) <= 1000),
    applied INTEGER NOT NULL DEFAULT 0 CHECK (applied IN (0, 1)),
    ts TEXT NOT NULL DEFAULT (datetime('now'))
)
"""

EXECUTIONS = """
CREATE TABLE executions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    task_id TEXT,
    key TEXT NOT NULL,
    argv TEXT NOT NULL,
    cwd TEXT NOT NULL,
    env_digest TEXT NOT NULL,
    tool TEXT NOT NULL,
    tool_version TEXT,
    tree TEXT NOT NULL,
    sandbox TEXT NOT NULL CHECK (sandbox IN ('ns', 'll', 'uid', 'none')),
    started_at TEXT NOT NULL,
    duration_ms INTEGER NOT NULL CHECK (duration_ms >= 0),
    exit_code INTEGER,
    signal INTEGER,
    stdout TEXT NOT NULL,
    stderr TEXT NOT NULL,
    assessment TEXT NOT NULL CHECK (assessment IN ('pass', 'fail', 'timeout', 'violation', 'lost')),
    UNIQUE (run_id, key)
)
"""

OBSERVATIONS = """
CREATE TABLE observations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    task_id TEXT,
    key TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    holds INTEGER NOT NULL CHECK (holds IN (0, 1)),
    detail TEXT NOT NULL,
    tree TEXT,
    observed_at TEXT NOT NULL,
    UNIQUE (run_id, key)
)
"""

CLAIMS = """
CREATE TABLE claims (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    task_id TEXT,
    key TEXT NOT NULL,
    agent TEXT NOT NULL,
    instance TEXT,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    claimed_at TEXT NOT NULL,
    UNIQUE (run_id, key)
)
"""

APPROVALS = """
CREATE TABLE approvals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    gate_id TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    mode TEXT NOT NULL CHECK (mode IN ('interactive', 'autonomous')),
    selected_option TEXT NOT NULL,
    auto_selected INTEGER NOT NULL CHECK (auto_selected IN (0, 1)),
    actor TEXT NOT NULL,
    user_response_raw TEXT
)
"""

CHECK_SOURCES = """
CREATE TABLE check_sources (
    check_id INTEGER PRIMARY KEY REFERENCES anvil_checks (id),
    run_id TEXT NOT NULL,
    provenance TEXT NOT NULL CHECK (provenance IN ('executed', 'observed', 'claimed')),
    execution_id INTEGER REFERENCES executions (id),
    observation_id INTEGER REFERENCES observations (id),
    claim_id INTEGER REFERENCES claims (id),
    CHECK (
        (provenance = 'executed' AND execution_id IS NOT NULL AND observation_id IS NULL AND claim_id IS NULL)
        OR (provenance = 'observed' AND execution_id IS NULL AND observation_id IS NOT NULL AND claim_id IS NULL)
        OR (provenance = 'claimed' AND execution_id IS NULL AND observation_id IS NULL AND claim_id IS NOT NULL)
    )
)
"""

EVENTS = """
CREATE TABLE events (
    run_id TEXT NOT NULL,
    seq INTEGER NOT NULL CHECK (seq >= 1),
    event_id TEXT NOT NULL,
    timestamp TEXT NOT NULL,
    workflow TEXT NOT NULL CHECK (workflow IN ('feature', 'autopilot', 'forge')),
    phase TEXT,
    task TEXT,
    attempt INTEGER,
    type TEXT NOT NULL,
    version INTEGER NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (run_id, seq)
) WITHOUT ROWID
"""

CHAIN = """
CREATE TABLE chain (
    run_id TEXT NOT NULL,
    seq INTEGER NOT NULL CHECK (seq >= 1),
    members TEXT NOT NULL,
    prev_hash TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (run_id, seq)
) WITHOUT ROWID
"""

ANCHORS = """
CREATE TABLE anchors (
    number INTEGER PRIMARY KEY CHECK (number >= 1),
    ledger TEXT NOT NULL,
    run_id TEXT NOT NULL,
    links INTEGER NOT NULL CHECK (links >= 0),
    head TEXT NOT NULL,
    anchored_at TEXT NOT NULL,
    witness TEXT NOT NULL,
    prev_hash TEXT NOT NULL,
    hash TEXT NOT NULL
)
"""

RUN_SUMMARIES = """
CREATE TABLE run_summaries (
    run_id TEXT NOT NULL,
    part TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (run_id, part)
) WITHOUT ROWID
"""

SCHEMA_META = """
CREATE TABLE IF NOT EXISTS schema_meta (
    table_name TEXT PRIMARY KEY,
    version INTEGER NOT NULL DEFAULT 1,
    migrated_at TEXT
)
"""

PUBLISHED_INDEXES = (
    "CREATE INDEX IF NOT EXISTS idx_anvil_task_phase ON anvil_checks(task_id, phase)",
    "CREATE INDEX IF NOT EXISTS idx_anvil_run_round ON anvil_checks(run_id, round)",
    "CREATE INDEX IF NOT EXISTS idx_anvil_run ON anvil_checks(run_id)",
    "CREATE INDEX IF NOT EXISTS idx_telemetry_run ON pipeline_telemetry(run_id)",
    "CREATE INDEX IF NOT EXISTS idx_telemetry_step ON pipeline_telemetry(run_id, step)",
    "CREATE INDEX IF NOT EXISTS idx_eval_run ON artifact_evaluations(run_id)",
    "CREATE INDEX IF NOT EXISTS idx_eval_agent ON artifact_evaluations(evaluator_agent)",
    "CREATE INDEX IF NOT EXISTS idx_eval_artifact ON artifact_evaluations(artifact_path)",
    "CREATE INDEX IF NOT EXISTS idx_instr_run ON instruction_updates(run_id)",
)

OWN_INDEXES = (
    # Covers the queries of all gates, so that their cost does not grow with the ledger.
    "CREATE INDEX IF NOT EXISTS idx_fairwitness_gate ON anvil_checks"
    "(run_id, task_id, phase, round, check_name, instance, verdict, severity, passed)",
    # Finds the same check in any run, so that it is not executed twice.
    "CREATE INDEX IF NOT EXISTS idx_fairwitness_execution_key ON executions(key)",
)


class Table(NamedTuple):
    """A table whose rows are chained: its columns in the order in which they are hashed, and the key of a row."""

    name: str
    columns: tuple[str, ...]
    key: str = "id"


def _columns(ddl: str) -> tuple[str, ...]:
    """Return the column names of a CREATE TABLE statement of this module."""
    inside = ddl[ddl.index("(") + 1 :]
    names = []
    depth = 0
    for line in inside.splitlines():
        word = line.split()[0] if line.split() else ""
        if depth == 0 and word.isidentifier() and word.islower():
            names.append(word)
        depth += line.count("(") - line.count(")")
    return tuple(names)


PUBLISHED = {
    "anvil_checks": ANVIL_CHECKS,
    "pipeline_telemetry": PIPELINE_TELEMETRY,
    "artifact_evaluations": ARTIFACT_EVALUATIONS,
    "instruction_updates": INSTRUCTION_UPDATES,
}
OWN = {
    "executions": EXECUTIONS,
    "observations": OBSERVATIONS,
    "claims": CLAIMS,
    "approvals": APPROVALS,
    "check_sources": CHECK_SOURCES,
    "events": EVENTS,
}
CHAINED = {
    name: Table(name, _columns(ddl), {"events": "seq", "check_sources": "check_id"}.get(name, "id"))
    for name, ddl in (PUBLISHED | OWN).items()
}
"""All tables whose rows are in the chain; `events` rows are identified by run and sequence number."""


def create_all(transaction: Transaction, dialect: SqlDialect) -> None:
    """Run the first migration: create all tables, indexes and triggers."""
    for ddl in (*PUBLISHED.values(), *OWN.values(), CHAIN, SCHEMA_META):
        transaction.run(_in(dialect, ddl))
    for index in (*PUBLISHED_INDEXES, *OWN_INDEXES):
        transaction.run(index)
    for name in PUBLISHED:
        transaction.run("INSERT INTO schema_meta (table_name, version, migrated_at) VALUES (?, 1, NULL)", (name,))
    if dialect is SqlDialect.POSTGRES:
        for statement in _POSTGRES_FUNCTIONS:
            transaction.run(statement)
    for name in (*CHAINED, "chain"):
        for statement in _guards(name, dialect):
            transaction.run(statement)
    for statement in _VERDICT_GUARD[dialect]:
        transaction.run(statement)


def add_summaries(transaction: Transaction, dialect: SqlDialect) -> None:
    """Run the second migration: create the summaries of runs, and write those of all runs there are.

    Summaries follow from the events, so they are neither chained nor guarded against changes.
    """
    transaction.run(_in(dialect, RUN_SUMMARIES))
    detail_summaries(transaction, dialect)


def detail_summaries(transaction: Transaction, _dialect: SqlDialect) -> None:
    """Run the fourth migration: write the summaries of all runs again, with their pipelines and boards."""
    for (run_id,) in transaction.run("SELECT DISTINCT run_id FROM events"):
        rebuild_summary(transaction, str(run_id))


def add_anchors(transaction: Transaction, dialect: SqlDialect) -> None:
    """Run the third migration: create the anchors, the chain over the heads of all runs."""
    transaction.run(_in(dialect, ANCHORS))
    transaction.run("CREATE INDEX idx_fairwitness_anchor_run ON anchors(run_id)")
    for statement in _guards("anchors", dialect):
        transaction.run(statement)


def _in(dialect: SqlDialect, ddl: str) -> str:
    """Return a statement of this module in a dialect."""
    if dialect is SqlDialect.SQLITE:
        return ddl
    return (
        ddl.replace("INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY")
        .replace("(datetime('now'))", "to_char(now() AT TIME ZONE 'utc', 'YYYY-MM-DD HH24:MI:SS')")
        .replace("INTEGER", "BIGINT")
        .replace("WITHOUT ROWID", "")
    )


_POSTGRES_FUNCTIONS = (
    """
    CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    """
    CREATE FUNCTION refuse_verdict() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION 'only a review has a verdict' USING ERRCODE = 'integrity_constraint_violation';
    END $$
    """,
    # So that the published telemetry queries run on both databases.
    """
    CREATE FUNCTION julianday(moment text) RETURNS double precision LANGUAGE sql STABLE AS $$
        SELECT EXTRACT(EPOCH FROM moment::timestamptz) / 86400.0 + 2440587.5
    $$
    """,
)


def _guards(table: str, dialect: SqlDialect) -> tuple[str, ...]:
    if dialect is SqlDialect.SQLITE:
        return tuple(
            f"CREATE TRIGGER IF NOT EXISTS {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
            "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
            for verb in ("UPDATE", "DELETE")
        )
    return (
        f"CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE ON {table} "
        "FOR EACH ROW EXECUTE FUNCTION refuse_change()",
        f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
    )


_VERDICT_GUARD = {
    SqlDialect.SQLITE: (
        "CREATE TRIGGER IF NOT EXISTS anvil_checks_verdict BEFORE INSERT ON anvil_checks "
        "WHEN NEW.phase <> 'review' AND (NEW.verdict IS NOT NULL OR NEW.severity IS NOT NULL) "
        "BEGIN SELECT RAISE(ABORT, 'only a review has a verdict'); END",
        "CREATE TRIGGER IF NOT EXISTS anvil_checks_review BEFORE INSERT ON anvil_checks "
        "WHEN NEW.phase = 'review' AND (NEW.verdict IS NULL OR NEW.passed <> (NEW.verdict = 'approve')) "
        "BEGIN SELECT RAISE(ABORT, 'a review passes exactly when its verdict approves'); END",
    ),
    SqlDialect.POSTGRES: (
        "CREATE TRIGGER anvil_checks_verdict BEFORE INSERT ON anvil_checks FOR EACH ROW "
        "WHEN (NEW.phase <> 'review' AND (NEW.verdict IS NOT NULL OR NEW.severity IS NOT NULL)) "
        "EXECUTE FUNCTION refuse_verdict()",
        "CREATE TRIGGER anvil_checks_review BEFORE INSERT ON anvil_checks FOR EACH ROW "
        "WHEN (NEW.phase = 'review' AND (NEW.verdict IS NULL OR NEW.passed <> (NEW.verdict = 'approve')::int)) "
        "EXECUTE FUNCTION refuse_verdict()",
    ),
}
