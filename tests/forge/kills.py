"""The forge demo as a run that is killed and resumed: how it is laid out, and how what it leaves is read."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairwitness.app.runs.begin_feature import RunRequest
from fairwitness.app.runs.begin_forge import begin_forge
from fairwitness.demo.start import RECORDINGS
from feature.kills import Play, settle
from forge.remains import assert_clean, content_of
from support import demo_forge as demo

ALONE = "\n[forge]\ncap = 1\n"
"""One attempt at a time."""
BEHIND = {demo.README: demo.ASK, demo.CLASHES: demo.README}
"""Who waits for whom beside what the captain planned: then nothing is merged while an attempt is made, the order of
everything is settled, and all of it can be compared."""


def _lay(root: Path, alone: bool) -> str:
    root.mkdir(parents=True)
    cassettes = demo.DEMO.write_cassettes(root / RECORDINGS)
    place = demo.DEMO.lay_out(root / demo.DEMO.repository.folder)
    if alone:
        settle(place, ALONE)
        _put_behind(cassettes)
    wanted = RunRequest(
        request=demo.DEMO.request,
        slug=demo.DEMO.slug,
        is_autonomous=True,
        agents="cassette",
        cassettes=cassettes,
    )
    return begin_forge(place, wanted).run_id


def _put_behind(cassettes: Path) -> None:
    """Lets the captain return a plan in which more tasks wait for others."""
    for session in demo.CAPTAIN:
        answer = copy.deepcopy(session.answer)
        graph = answer.get("dag", {}).get("nodes", []) + answer.get("overlay", {}).get("addedNodes", [])
        for each in (*answer["tasks"], *graph):
            _wait(each)
        bent = replace(session, answer=answer)
        (cassettes / bent.file_name).write_bytes(bent.cassette())


def _wait(each: dict[str, Any]) -> None:
    if each["id"] in BEHIND:
        each["dependencies"].append(BEHIND[each["id"]])


FORGE = Play(demo.DEMO.repository.folder, _lay, "done      14 of 14 tasks merged", content_of, assert_clean)
