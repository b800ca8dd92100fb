"""The commands that exist: where each lives and what it does in one line. Help is printed from this table alone."""


class Command:
    """A command, imported only when it is called. A plain class: `typing` alone would double the time of --help."""

    __slots__ = ("module", "name", "summary")

    def __init__(self, name: str, module: str, summary: str) -> None:
        self.name = name
        self.module = module
        self.summary = summary


COMMANDS: tuple[Command, ...] = (
    Command("feature", "fairwitness.cli.feature", "from a request to a commit with its evidence"),
    Command("forge", "fairwitness.cli.forge", "from a request to a plan of many tasks, and to a branch"),
    Command("autopilot", "fairwitness.cli.autopilot", "a roadmap of phases, driven to its end"),
    Command("verify", "fairwitness.cli.verify", "prove a change by running its checks before and after"),
    Command("doctor", "fairwitness.cli.doctor", "what this machine lacks and how to mend it"),
    Command("demo", "fairwitness.cli.demo", "a whole run with a recorded team, no key and no network"),
    Command("agents", "fairwitness.cli.agents", "the roles, who plays them, and one of them tried"),
    Command("status", "fairwitness.cli.status", "the runs of this repository and where each stands"),
    Command("watch", "fairwitness.cli.watch", "follow a run until it ends"),
    Command("resume", "fairwitness.cli.resume", "go on with a run that stopped"),
    Command("inbox", "fairwitness.cli.inbox", "the questions that wait for you"),
    Command("answer", "fairwitness.cli.answer", "answer a question that waits"),
    Command("verdict", "fairwitness.cli.verdict", "say whether a phase is as it should be"),
    Command("cancel", "fairwitness.cli.cancel", "end a run; what it made is kept"),
    Command("rollback", "fairwitness.cli.rollback", "take a run's commit back; nothing is lost"),
    Command("report", "fairwitness.cli.report", "one run as one HTML file"),
    Command("replay", "fairwitness.cli.replay", "take a run's decisions again from the same facts"),
    Command("knowledge", "fairwitness.cli.knowledge", "what runs have learned about this repository; forget it"),
    Command("plan", "fairwitness.cli.plan", "a forge run's plan: look at it, edit it, approve it"),
    Command("cr", "fairwitness.cli.cr", "what a forge run would add to its plan: approve or reject it"),
    Command("dag", "fairwitness.cli.dag", "a run's graph of tasks"),
    Command("task", "fairwitness.cli.task", "one task of a run, its attempts and what was said of each"),
    Command("retry", "fairwitness.cli.retry", "try a task again that failed for good"),
    Command("pause", "fairwitness.cli.pause", "start nothing new in a run until it is resumed"),
    Command("worker", "fairwitness.cli.worker", "carry out runs until told to stop"),
    Command("events", "fairwitness.cli.events", "what happened in a run, in order"),
    Command("gate", "fairwitness.cli.gate", "why a gate is open or shut"),
    Command("evidence", "fairwitness.cli.evidence", "what a check ran and everything it printed"),
    Command("ledger", "fairwitness.cli.ledger", "check the evidence, its gates, and ask its tables"),
    Command("schema", "fairwitness.cli.schema", "list and export contracts, check documents against them"),
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
