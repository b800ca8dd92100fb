"""Sixty-one attempts to get out, and some more, in every tier, as root and as a user: judged from outside.

`test_control` runs the same programs as plain subprocesses and shows that they do get out there.
"""

import json
from pathlib import Path

import pytest

from sandbox.escapes.attacks import kernel, network, processes, reads, writes
from sandbox.escapes.campaign import BARE, Verdict
from sandbox.escapes.starting import IDENTITIES, Unavailable, as_user, campaign, kernel_refuses, landlock_abi, python
from sandbox.escapes.table import ATTEMPTS, BY_ID, SIXTY_ONE, Attempt
from support.fixtures import ROOT

pytestmark = [pytest.mark.req("A15"), pytest.mark.timeout(240)]

TIERS = [("ns", "root"), ("ns", "user"), ("ll", "root"), ("ll", "user"), ("uid", "root")]
_LANDLOCK_NEEDED = {"W13": 3, "P01": 6}
_HELD = [pytest.param(tier, who, a.id, id=f"{tier}-{who}-{a.id}") for tier, who in TIERS for a in ATTEMPTS]
_CONTROLLED = [
    pytest.param(who, a.id, id=f"{who}-{a.id}")
    for who in IDENTITIES
    for a in ATTEMPTS
    if a.control.who == "everybody" or a.control.who == who
]


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all test processes of this session see."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if base.name.startswith("popen-") else base) / "escapes"


def _wanted(request: pytest.FixtureRequest, prefix: str) -> list[str]:
    """The attempts that this session asks of a campaign: all of them, or what was selected."""
    names = [item.name for item in request.session.items if isinstance(item, pytest.Function)]
    marks = {f"[{prefix}-{attempt.id}]": attempt.id for attempt in ATTEMPTS}
    return sorted(
        {marks[name[name.index("[") :]] for name in names if "[" in name and name[name.index("[") :] in marks}
    )


def _verdict(request: pytest.FixtureRequest, shared: Path, tier: str, who: str, name: str) -> Verdict:
    identity = IDENTITIES[who]
    prefix = who if tier == BARE else f"{tier}-{who}"
    try:
        if tier != BARE and (reason := kernel_refuses(tier, identity)):
            raise Unavailable(reason)
        return campaign(shared, tier, identity, _wanted(request, prefix))[name]
    except Unavailable as unavailable:
        pytest.skip(str(unavailable))


def _told(attempt: Attempt, verdict: Verdict) -> str:
    return f"{attempt.id}, {attempt.title}: {verdict.lost}\n{json.dumps(verdict.escapes, indent=1)}\n" + "\n".join(
        f"{key}: {value}" for key, value in verdict.ran.items()
    )


@pytest.mark.parametrize(("tier", "who", "name"), _HELD)
def test_held(request: pytest.FixtureRequest, shared: Path, tier: str, who: str, name: str) -> None:
    attempt = BY_ID[name]
    verdict = _verdict(request, shared, tier, who, name)
    assert not verdict.lost, _told(attempt, verdict)
    if tier in attempt.gets_out:
        if not verdict.escapes and attempt.control.kernel_may_refuse:
            pytest.skip(f"this kernel refuses {name} to everybody")
        assert set(verdict.escapes) == {str(attempt.channel)}, _told(attempt, verdict)
        return
    if verdict.escapes and tier == "ll" and landlock_abi() < _LANDLOCK_NEEDED.get(name, 0):
        pytest.skip(f"Landlock of this kernel (ABI {landlock_abi()}) cannot hold it, and the runner says so")
    assert not verdict.escapes, _told(attempt, verdict)


@pytest.mark.parametrize(("who", "name"), _CONTROLLED)
def test_control(request: pytest.FixtureRequest, shared: Path, who: str, name: str) -> None:
    attempt = BY_ID[name]
    verdict = _verdict(request, shared, BARE, who, name)
    assert not verdict.lost, _told(attempt, verdict)
    if not verdict.escapes and attempt.control.kernel_may_refuse:
        pytest.skip(f"this kernel refuses it to everybody: {verdict.ran['stdout']}")
    assert str(attempt.channel) in verdict.escapes, _told(attempt, verdict)


def test_the_table_holds_sixty_one_attempts_and_each_has_its_program() -> None:
    groups = {letter: sum(a.id.startswith(letter) for a in SIXTY_ONE) for letter in "WRPNS"}
    assert groups == {"W": 23, "R": 11, "P": 16, "N": 8, "S": 3}
    programs = {name for module in (writes, reads, processes, network, kernel) for name in module.ATTACKS}
    assert programs == {attempt.id for attempt in ATTEMPTS}


def test_only_the_known_ones_may_get_out_and_each_names_its_duty() -> None:
    known = {tier: {a.id for a in ATTEMPTS if tier in a.gets_out} for tier in ("ns", "ll", "uid")}
    assert known == {"ns": set(), "ll": {"W10", "R09"}, "uid": {"W10", "R09", "W21"}}
    assert all(bool(a.duty) == bool(a.gets_out) for a in ATTEMPTS)
    assert all(a.control.why for a in ATTEMPTS if a.control.who == "nobody")


def _page() -> str:
    """The table of docs/sandbox.md."""
    rows = ["| attempt | what | " + " | ".join(f"{tier}, {who}" for tier, who in TIERS) + " |", "|---" * 7 + "|"]
    for one in ATTEMPTS:
        cells = ("**out**" if tier in one.gets_out else "held" for tier, _ in TIERS)
        rows.append(f"| {one.id} | {one.title}{f' ({one.duty})' if one.duty else ''} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def test_the_page_shows_what_is_expected_of_every_tier() -> None:
    """`test_held` tries every cell; a cell that is seen otherwise fails there."""
    assert _page() in (ROOT / "docs" / "sandbox.md").read_text(), f"docs/sandbox.md needs this table:\n{_page()}"


@pytest.mark.parametrize("who", IDENTITIES)
def test_every_tier_that_the_kernel_allows_is_offered(who: str) -> None:
    """Otherwise a broken probe would turn all of the above into skips, and nobody would notice."""
    identity = IDENTITIES[who]
    program = (
        "from fairwitness.app.assembly.backends import runner; print(*(tier.value for tier in runner().features.tiers))"
    )
    try:
        done = as_user(identity, [python(identity), "-P", "-c", program], timeout=30)
    except Unavailable as unavailable:
        pytest.skip(str(unavailable))
    allowed = {tier for tier, whose in TIERS if whose == who and kernel_refuses(tier, identity) is None}
    assert allowed == set(done.stdout.split()) - {"none"}, done.stderr
