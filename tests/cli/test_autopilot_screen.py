"""The living board of an autopilot run: bounded, around what is worked on, and the same as the command shows."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from app.autopilot_grounds import RUN, at_step, begun, completed, lay_out, started, tell
from fairwitness.app.views.board import view_of_run
from fairwitness.app.views.followed_run import follow_run
from fairwitness.cli.screens.autopilot import AutopilotLive, board_lines
from fairwitness.cli.screens.choice import screen_of
from fairwitness.cli.screens.columns import cells
from fairwitness.cli.screens.run import LINES, OutputMode, PlainLines
from fairwitness.contracts.autopilot.vocabulary import StepName

PHASES = tuple(str(number) for number in range(1, 31))
LONG = "# Roadmap\n\n" + "".join(f"- [ ] **Phase {number}: 進捗 {'x' * 60}** - one\n" for number in PHASES)
LONG += "".join(
    f"\n### Phase {number}: 進捗 {'x' * 60}\n\n**Goal**: It works.\n**Depends on**: Nothing\n"
    "**Success Criteria**:\n\n1. It works\n"
    for number in PHASES
)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = lay_out(tmp_path / "shop", LONG)
    begun(folder, PHASES)
    tell(folder, started("1"), completed("1"), started("20"), at_step("20", StepName.VERIFY))
    return folder


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_board_fits_and_shows_what_is_worked_on(top: Path, width: int) -> None:
    view = view_of_run(top, None)
    lines = board_lines(view, width, height=LINES - 2)
    assert len(lines) <= LINES - 2
    assert all(cells(line) <= width for line in lines)
    assert any("verify" in line for line in lines)
    assert lines[-1] == f"  and {30 - (len(lines) - 2)} more phases"
    assert len(board_lines(view, width)) == 31


def test_the_living_part_is_drawn_from_the_fold(top: Path) -> None:
    out = io.StringIO()
    console = Console(file=out, width=80, force_terminal=True, highlight=False, markup=False, emoji=False)
    with follow_run(top, RUN) as followed, AutopilotLive(followed, "Ctrl-C stops it", console=console) as live:
        live.show(followed, [])
        assert "30 phases" in out.getvalue()
        tell(top, completed("20", 8.7))
        live.show(followed, followed.news())
    assert "phase     20             passed   score 8.7" in out.getvalue()
    assert "2/30 phases" in out.getvalue()


def test_where_nobody_sees_a_board_there_are_lines(top: Path) -> None:
    with follow_run(top, RUN) as followed:
        assert type(screen_of(followed, OutputMode(plain=True), hint="-")) is PlainLines
