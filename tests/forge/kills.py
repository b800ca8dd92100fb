"""The forge demo as a run that is killed and resumed: how it is laid out, and how what it leaves is read."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairwitness.agents.cassettes import name_of, spell
from fairwitness.app.demo import FORGE_REPOSITORY, RECORDINGS
from fairwitness.app.demo_feature.team import cassette_of
from fairwitness.app.demo_forge import plans, repository, team
from fairwitness.app.demo_forge.plans import ASK, CLASHES, README
from fairwitness.app.runs.begin_feature import Wanted
from fairwitness.app.runs.begin_forge import begin_forge
from feature.kills import Play, settle
from forge.remains import assert_clean, content_of

ALONE = "\n[forge]\ncap = 1\n"
"""One attempt at a time."""
BEHIND = {README: ASK, CLASHES: README}
"""Who waits for whom beside what the captain planned: then nothing is merged while an attempt is made, the order of
everything is settled, and all of it can be compared."""


def _lay(root: Path, alone: bool) -> str:
    root.mkdir(parents=True)
    cassettes = team.write_cassettes(root / RECORDINGS)
    place = repository.lay_out(root / FORGE_REPOSITORY)
    if alone:
        settle(place, ALONE)
        _put_behind(cassettes)
    wanted = Wanted(
        request=repository.REQUEST,
        slug=repository.SLUG,
        is_autonomous=True,
        agents="cassette",
        cassettes=cassettes,
    )
    return begin_forge(place, wanted).run_id


def _put_behind(cassettes: Path) -> None:
    """Lets the captain return a plan in which more tasks wait for others."""
    for session in plans.SESSIONS:
        answer = copy.deepcopy(session.answer)
        graph = answer.get("dag", {}).get("nodes", []) + answer.get("overlay", {}).get("addedNodes", [])
        for each in (*answer["tasks"], *graph):
            _wait(each)
        played = cassette_of(replace(session, answer=answer))
        (cassettes / name_of(session.role, session.instance, session.number)).write_bytes(spell(played))


def _wait(each: dict[str, Any]) -> None:
    if each["id"] in BEHIND:
        each["dependencies"].append(BEHIND[each["id"]])


FORGE = Play(FORGE_REPOSITORY, _lay, "COMPLETED: 14/14 merged", content_of, assert_clean)
