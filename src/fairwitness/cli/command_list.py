"""The commands that exist: where each lives and what it does in one line. Help is printed from this table alone."""


class CommandEntry:
    """A command, imported only when it is called. A plain class: `typing` alone would double the time of --help."""

    __slots__ = ("module", "name", "summary")

    def __init__(self, name: str, module: str, summary: str) -> None:
        self.name = name
        self.module = module
        self.summary = summary


COMMANDS: tuple[CommandEntry, ...] = (
    CommandEntry("feature", "fairwitness.cli.commands.feature", "from a request to a commit with its evidence"),
    CommandEntry("forge", "fairwitness.cli.commands.forge", "from a request to a plan of many tasks, and to a branch"),
    CommandEntry("autopilot", "fairwitness.cli.commands.autopilot", "a roadmap of phases, driven to its end"),
    CommandEntry("verify", "fairwitness.cli.commands.verify", "prove a change by running its checks before and after"),
    CommandEntry("doctor", "fairwitness.cli.commands.doctor", "what this machine lacks and how to mend it"),
    CommandEntry("demo", "fairwitness.cli.commands.demo", "a whole run with a recorded team, no key and no network"),
    CommandEntry("agents", "fairwitness.cli.commands.agents", "the roles, who plays them, and one of them tried"),
    CommandEntry("status", "fairwitness.cli.commands.status", "the runs of this repository and where each stands"),
    CommandEntry("watch", "fairwitness.cli.commands.watch", "follow a run until it ends"),
    CommandEntry("resume", "fairwitness.cli.commands.resume", "go on with a run that stopped"),
    CommandEntry("inbox", "fairwitness.cli.commands.inbox", "the questions that wait for you"),
    CommandEntry("answer", "fairwitness.cli.commands.answer", "answer a question that waits"),
    CommandEntry("verdict", "fairwitness.cli.commands.verdict", "say whether a phase is as it should be"),
    CommandEntry("cancel", "fairwitness.cli.commands.cancel", "end a run; what it made is kept"),
    CommandEntry("rollback", "fairwitness.cli.commands.rollback", "take a run's commit back; nothing is lost"),
    CommandEntry("report", "fairwitness.cli.commands.report", "one run as one HTML file"),
    CommandEntry("replay", "fairwitness.cli.commands.replay", "take a run's decisions again from the same facts"),
    CommandEntry(
        "knowledge", "fairwitness.cli.commands.knowledge", "what runs have learned about this repository; forget it"
    ),
    CommandEntry("plan", "fairwitness.cli.commands.plan", "a forge run's plan: look at it, edit it, approve it"),
    CommandEntry("cr", "fairwitness.cli.commands.cr", "what a forge run would add to its plan: approve or reject it"),
    CommandEntry("dag", "fairwitness.cli.commands.dag", "a run's graph of tasks"),
    CommandEntry("task", "fairwitness.cli.commands.task", "one task of a run, its attempts and what was said of each"),
    CommandEntry("retry", "fairwitness.cli.commands.retry", "try a task again that failed for good"),
    CommandEntry("pause", "fairwitness.cli.commands.pause", "start nothing new in a run until it is resumed"),
    CommandEntry("worker", "fairwitness.cli.commands.worker", "carry out runs until told to stop"),
    CommandEntry("events", "fairwitness.cli.commands.events", "what happened in a run, in order"),
    CommandEntry("gate", "fairwitness.cli.commands.gate", "why a gate is open or shut"),
    CommandEntry("evidence", "fairwitness.cli.commands.evidence", "what a check ran and everything it printed"),
    CommandEntry("ledger", "fairwitness.cli.commands.ledger", "check the evidence, its gates, and ask its tables"),
    CommandEntry(
        "schema", "fairwitness.cli.commands.schema", "list and export contracts, check documents against them"
    ),
)

USAGE = "Usage: fairwitness [--version] [--help] COMMAND [ARGUMENTS]"
PROMISE = "Fair Witness drives AI coding agents from a request to a commit:\nagents propose, evidence decides."


def help_text() -> str:
    """What `fairwitness --help` prints."""
    width = max(len(command.name) for command in COMMANDS)
    listed = "\n".join(f"  {command.name:<{width}}  {command.summary}" for command in COMMANDS)
    return (
        f"{USAGE}\n\n{PROMISE}\n\nExamples:\n"
        "  fairwitness demo\n"
        "  fairwitness verify --base main\n"
        "  fairwitness schema check docs/feature/login/plan-output.yaml\n\n"
        f"Commands:\n{listed}\n\n"
        "`fairwitness COMMAND --help` says more. Every command takes --json.\n"
    )
