"""The commands, the module of each, and its summary. `fairwitness --help` is printed from this table alone."""


class CommandEntry:
    """A command, imported when it is called. A plain class: importing `typing` would double the time of --help."""

    __slots__ = ("module", "name", "summary")

    def __init__(self, name: str, module: str, summary: str) -> None:
        self.name = name
        self.module = module
        self.summary = summary


COMMANDS: tuple[CommandEntry, ...] = (
    CommandEntry("feature", "fairwitness.cli.commands.feature", "turn a request into a commit with its evidence"),
    CommandEntry("forge", "fairwitness.cli.commands.forge", "turn a request into a plan of many tasks and a branch"),
    CommandEntry("autopilot", "fairwitness.cli.commands.autopilot", "drive a roadmap of phases to its end"),
    CommandEntry("verify", "fairwitness.cli.commands.verify", "prove a change by running its checks before and after"),
    CommandEntry("doctor", "fairwitness.cli.commands.doctor", "check that this machine has what Fair Witness needs"),
    CommandEntry("trust", "fairwitness.cli.commands.trust", "decide whether settings of this repository count"),
    CommandEntry("demo", "fairwitness.cli.commands.demo", "play a whole run with recorded agents, no key, no network"),
    CommandEntry("agents", "fairwitness.cli.commands.agents", "list the roles and their agents, try or export a role"),
    CommandEntry("status", "fairwitness.cli.commands.status", "show the runs of this repository and their status"),
    CommandEntry("watch", "fairwitness.cli.commands.watch", "follow a run until it ends"),
    CommandEntry("resume", "fairwitness.cli.commands.resume", "continue a run that stopped"),
    CommandEntry("inbox", "fairwitness.cli.commands.inbox", "list the questions that wait for you"),
    CommandEntry("answer", "fairwitness.cli.commands.answer", "answer a question of a run"),
    CommandEntry("verdict", "fairwitness.cli.commands.verdict", "decide whether a phase passes"),
    CommandEntry("cancel", "fairwitness.cli.commands.cancel", "cancel a run and keep what it made"),
    CommandEntry("rollback", "fairwitness.cli.commands.rollback", "undo the commit of a run; a reference is kept"),
    CommandEntry("report", "fairwitness.cli.commands.report", "write a run as one HTML file"),
    CommandEntry("replay", "fairwitness.cli.commands.replay", "repeat a run's decisions from the recorded facts"),
    CommandEntry(
        "knowledge", "fairwitness.cli.commands.knowledge", "show or forget what runs learned about this repository"
    ),
    CommandEntry("plan", "fairwitness.cli.commands.plan", "show, edit or approve the plan of a forge run"),
    CommandEntry("cr", "fairwitness.cli.commands.cr", "approve or reject change requests of a forge run"),
    CommandEntry("dag", "fairwitness.cli.commands.dag", "show the task graph of a run"),
    CommandEntry("task", "fairwitness.cli.commands.task", "show one task of a run and its attempts"),
    CommandEntry("retry", "fairwitness.cli.commands.retry", "give a failed task more attempts"),
    CommandEntry("pause", "fairwitness.cli.commands.pause", "pause a run until it is resumed"),
    CommandEntry("worker", "fairwitness.cli.commands.worker", "execute runs until stopped"),
    CommandEntry("adopt", "fairwitness.cli.commands.adopt", "use a state folder that was copied, moved or restored"),
    CommandEntry("events", "fairwitness.cli.commands.events", "list the events of a run"),
    CommandEntry("gate", "fairwitness.cli.commands.gate", "explain why a gate is open or blocked"),
    CommandEntry("evidence", "fairwitness.cli.commands.evidence", "show what a check ran and its output"),
    CommandEntry("ledger", "fairwitness.cli.commands.ledger", "verify the evidence, show its gates, query its tables"),
    CommandEntry("schema", "fairwitness.cli.commands.schema", "list or export contracts, check documents against them"),
)

USAGE = "Usage: fairwitness [--version] [--help] COMMAND [ARGUMENTS]"
PROMISE = "Fair Witness drives AI coding agents from a request to a commit:\nagents propose, evidence decides."


def help_text() -> str:
    """Return the text of `fairwitness --help`."""
    width = max(len(command.name) for command in COMMANDS)
    listed = "\n".join(f"  {command.name:<{width}}  {command.summary}" for command in COMMANDS)
    return (
        f"{USAGE}\n\n{PROMISE}\n\nExamples:\n"
        "  fairwitness demo\n"
        "  fairwitness verify --base main\n"
        "  fairwitness schema check docs/feature/login/plan-output.yaml\n\n"
        f"Commands:\n{listed}\n\n"
        "Run `fairwitness COMMAND --help` for details. Every command takes --json.\n"
    )
