"""The commands that exist: where each lives and what it does in one line. Help is printed from this table alone."""


class Command:
    """A command, imported only when it is called. A plain class: `typing` alone would double the time of --help."""

    __slots__ = ("module", "name", "summary")

    def __init__(self, name: str, module: str, summary: str) -> None:
        self.name = name
        self.module = module
        self.summary = summary


COMMANDS: tuple[Command, ...] = (
    Command("feature", "fairwitness.cli.commands.feature", "from a request to a commit with its evidence"),
    Command("forge", "fairwitness.cli.commands.forge", "from a request to a plan of many tasks, and to a branch"),
    Command("autopilot", "fairwitness.cli.commands.autopilot", "a roadmap of phases, driven to its end"),
    Command("verify", "fairwitness.cli.commands.verify", "prove a change by running its checks before and after"),
    Command("doctor", "fairwitness.cli.commands.doctor", "what this machine lacks and how to mend it"),
    Command("demo", "fairwitness.cli.commands.demo", "a whole run with a recorded team, no key and no network"),
    Command("agents", "fairwitness.cli.commands.agents", "the roles, who plays them, and one of them tried"),
    Command("status", "fairwitness.cli.commands.status", "the runs of this repository and where each stands"),
    Command("watch", "fairwitness.cli.commands.watch", "follow a run until it ends"),
    Command("resume", "fairwitness.cli.commands.resume", "go on with a run that stopped"),
    Command("inbox", "fairwitness.cli.commands.inbox", "the questions that wait for you"),
    Command("answer", "fairwitness.cli.commands.answer", "answer a question that waits"),
    Command("verdict", "fairwitness.cli.commands.verdict", "say whether a phase is as it should be"),
    Command("cancel", "fairwitness.cli.commands.cancel", "end a run; what it made is kept"),
    Command("rollback", "fairwitness.cli.commands.rollback", "take a run's commit back; nothing is lost"),
    Command("report", "fairwitness.cli.commands.report", "one run as one HTML file"),
    Command("replay", "fairwitness.cli.commands.replay", "take a run's decisions again from the same facts"),
    Command(
        "knowledge", "fairwitness.cli.commands.knowledge", "what runs have learned about this repository; forget it"
    ),
    Command("plan", "fairwitness.cli.commands.plan", "a forge run's plan: look at it, edit it, approve it"),
    Command("cr", "fairwitness.cli.commands.cr", "what a forge run would add to its plan: approve or reject it"),
    Command("dag", "fairwitness.cli.commands.dag", "a run's graph of tasks"),
    Command("task", "fairwitness.cli.commands.task", "one task of a run, its attempts and what was said of each"),
    Command("retry", "fairwitness.cli.commands.retry", "try a task again that failed for good"),
    Command("pause", "fairwitness.cli.commands.pause", "start nothing new in a run until it is resumed"),
    Command("worker", "fairwitness.cli.commands.worker", "carry out runs until told to stop"),
    Command("events", "fairwitness.cli.commands.events", "what happened in a run, in order"),
    Command("gate", "fairwitness.cli.commands.gate", "why a gate is open or shut"),
    Command("evidence", "fairwitness.cli.commands.evidence", "what a check ran and everything it printed"),
    Command("ledger", "fairwitness.cli.commands.ledger", "check the evidence, its gates, and ask its tables"),
    Command("schema", "fairwitness.cli.commands.schema", "list and export contracts, check documents against them"),
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
