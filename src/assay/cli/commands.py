"""The commands that exist: where each lives and what it does in one line. Help is printed from this table alone."""


class Command:
    """A command, imported only when it is called. A plain class: `typing` alone would double the time of --help."""

    __slots__ = ("module", "name", "summary")

    def __init__(self, name: str, module: str, summary: str) -> None:
        self.name = name
        self.module = module
        self.summary = summary


COMMANDS: tuple[Command, ...] = (
    Command("feature", "assay.cli.feature", "from a request to a commit with its evidence"),
    Command("forge", "assay.cli.forge", "from a request to a plan of many tasks, and to a branch"),
    Command("autopilot", "assay.cli.autopilot", "a roadmap of phases, driven to its end"),
    Command("verify", "assay.cli.verify", "prove a change by running its checks before and after"),
    Command("doctor", "assay.cli.doctor", "what this machine lacks and how to mend it"),
    Command("demo", "assay.cli.demo", "a whole run with a recorded team, no key and no network"),
    Command("agents", "assay.cli.agents", "the roles, who plays them, and one of them tried"),
    Command("status", "assay.cli.status", "the runs of this repository and where each stands"),
    Command("watch", "assay.cli.watch", "follow a run until it ends"),
    Command("resume", "assay.cli.resume", "go on with a run that stopped"),
    Command("inbox", "assay.cli.inbox", "the questions that wait for you"),
    Command("answer", "assay.cli.answer", "answer a question that waits"),
    Command("verdict", "assay.cli.verdict", "say whether a phase is as it should be"),
    Command("cancel", "assay.cli.cancel", "end a run; what it made is kept"),
    Command("rollback", "assay.cli.rollback", "take a run's commit back; nothing is lost"),
    Command("report", "assay.cli.report", "one run as one HTML file"),
    Command("replay", "assay.cli.replay", "take a run's decisions again from the same facts"),
    Command("knowledge", "assay.cli.knowledge", "what runs have learned about this repository; forget it"),
    Command("plan", "assay.cli.plan", "a forge run's plan: look at it, edit it, approve it"),
    Command("cr", "assay.cli.cr", "what a forge run would add to its plan: approve or reject it"),
    Command("dag", "assay.cli.dag", "a run's graph of tasks"),
    Command("task", "assay.cli.task", "one task of a run, its attempts and what was said of each"),
    Command("retry", "assay.cli.retry", "try a task again that failed for good"),
    Command("pause", "assay.cli.pause", "start nothing new in a run until it is resumed"),
    Command("worker", "assay.cli.worker", "carry out runs until told to stop"),
    Command("events", "assay.cli.events", "what happened in a run, in order"),
    Command("gate", "assay.cli.gate", "why a gate is open or shut"),
    Command("evidence", "assay.cli.evidence", "what a check ran and everything it printed"),
    Command("ledger", "assay.cli.ledger", "check the evidence, its gates, and ask its tables"),
    Command("schema", "assay.cli.schema", "list and export contracts, check documents against them"),
)

USAGE = "Usage: assay [--version] [--help] COMMAND [ARGUMENTS]"
PROMISE = "Assay drives AI coding agents from a request to a commit:\nagents propose, evidence decides."


def help_text() -> str:
    """What `assay --help` prints."""
    width = max(len(command.name) for command in COMMANDS)
    listed = "\n".join(f"  {command.name:<{width}}  {command.summary}" for command in COMMANDS)
    return (
        f"{USAGE}\n\n{PROMISE}\n\nExamples:\n"
        "  assay demo\n"
        "  assay verify --base main\n"
        "  assay schema check docs/feature/login/plan-output.yaml\n\n"
        f"Commands:\n{listed}\n\n"
        "`assay COMMAND --help` says more. Every command takes --json.\n"
    )
