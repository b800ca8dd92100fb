"""Settings of a repository count after the user trusted them: for one repository, and for one content of the file."""

import os
import shutil
from pathlib import Path

import pytest

from fairwitness.agents.roles import ROLES
from fairwitness.app.assembly.feature_runner import feature_parts
from fairwitness.app.assembly.parts import RunParts
from fairwitness.app.runs.begin_feature import BegunFeature, RunRequest, begin_feature
from fairwitness.app.runs.drive import record_resumed
from fairwitness.app.settings.agents import agents_settings
from fairwitness.app.settings.review import (
    CONTRACTS,
    file_at,
    look_at_trust,
    review_settings,
    revoke_trust,
    trust_file,
)
from fairwitness.app.settings.trust import VARIABLE, RepositoryFile, is_trusted, refuse_revoked
from fairwitness.app.settings.verify import TABLES, verify_settings
from fairwitness.app.state import ledger_in, state_of
from fairwitness.app.views.detail import open_database, read_detail
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.errors import NotReady, UsageError
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from git.person import Person
from support import demo_feature as demo
from support.trust import trust

WEAKER = '[verify]\nmutants = 0\ndisable = ["ruff"]\n[verify.sandbox]\ntier = "none"\nmemory_mb = 512\n'
NOWHERE = Path("/nonexistent/fairwitness.toml")


@pytest.fixture
def person(tmp_path: Path, user_state_home: Path) -> Person:
    """A person with a repository whose settings weaken checks, and a state directory of their own."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path / "state")
    made = Person.in_folder(tmp_path)
    made.commit("begin", **{"fairwitness.toml": WEAKER})
    return made


def in_force(top: Path) -> tuple[int, SandboxTier, int]:
    """What is in force of the three kinds: lowered evidence, a weaker tier, a tighter limit."""
    settings, _ = verify_settings(top, user=NOWHERE)
    return settings.mutants, settings.sandbox.tier, settings.sandbox.memory_mb


WITHOUT, WITH = (10, SandboxTier.UID, 512), (0, SandboxTier.NONE, 512)


@pytest.mark.req("X5")
def test_what_weakens_counts_after_trust_and_what_tightens_counts_at_once(person: Person) -> None:
    top = person.folder
    before = verify_settings(top, user=NOWHERE)[1]
    assert in_force(top) == WITHOUT
    (note,) = review_settings(top, user=NOWHERE).notes
    assert note == (
        "not in force until you trust fairwitness.toml: verify.mutants, verify.disable, verify.sandbox.tier; "
        "to look at them: fairwitness trust"
    )
    trust_file(look_at_trust(top))
    assert in_force(top) == WITH
    assert review_settings(top, user=NOWHERE).notes == ()
    assert verify_settings(top, user=NOWHERE)[1] != before, "results of other settings are not mixed up"


@pytest.mark.req("X5")
def test_a_changed_file_asks_again_and_the_old_content_is_still_trusted(person: Person) -> None:
    top = person.folder
    trust(top)
    (top / "fairwitness.toml").write_text(WEAKER + "# one more line\n")
    assert in_force(top) == WITHOUT
    (top / "fairwitness.toml").write_text(WEAKER)
    assert in_force(top) == WITH


def test_trust_is_shared_by_the_worktrees_of_a_repository(person: Person, tmp_path: Path) -> None:
    trust(person.folder)
    person.git("worktree", "add", "-q", str(tmp_path / "linked"))
    assert in_force(tmp_path / "linked") == WITH
    (tmp_path / "linked" / "fairwitness.toml").write_text(WEAKER + "#\n")
    trust(tmp_path / "linked")
    (person.folder / "fairwitness.toml").write_text(WEAKER + "#\n")
    assert in_force(person.folder) == WITH


@pytest.mark.req("X5")
def test_the_same_file_in_another_repository_is_not_trusted(person: Person, tmp_path: Path) -> None:
    trust(person.folder)
    person.git("clone", "-q", str(person.folder), str(tmp_path / "other"))
    assert in_force(tmp_path / "other") == WITHOUT
    shutil.copytree(person.folder, tmp_path / "copied")
    assert in_force(tmp_path / "copied") == WITHOUT


def test_another_repository_at_the_same_path_is_not_trusted(person: Person, tmp_path: Path) -> None:
    trust(person.folder)
    person.folder.rename(tmp_path / "moved")  # its inode stays taken
    assert in_force(tmp_path / "moved") == WITHOUT
    person.git("clone", "-q", str(tmp_path / "moved"), str(person.folder), cwd=tmp_path)
    assert in_force(person.folder) == WITHOUT


def test_revoking_ends_the_trust_in_every_version_and_it_can_be_given_again(person: Person) -> None:
    top = person.folder
    trust(top)
    (top / "fairwitness.toml").write_text(WEAKER + "#\n")
    trust(top)
    assert len(revoke_trust(top)) == 2
    assert in_force(top) == WITHOUT
    assert revoke_trust(top) == ()
    trust(top)
    assert in_force(top) == WITH


def test_unattended_an_environment_variable_names_the_hash(person: Person) -> None:
    file = RepositoryFile(person.folder, WEAKER.encode())
    os.environ[VARIABLE] = "0" * 64
    assert in_force(person.folder) == WITHOUT
    os.environ[VARIABLE] = f"{'0' * 64}, {file.sha256}"
    assert in_force(person.folder) == WITH
    (person.folder / "fairwitness.toml").write_text(WEAKER + "#\n")
    assert in_force(person.folder) == WITHOUT
    for wrong in ("yes", "*", file.sha256.upper(), file.sha256[:63]):
        os.environ[VARIABLE] = wrong
        with pytest.raises(UsageError, match="is not a SHA-256"):
            in_force(person.folder)


def test_a_users_own_file_needs_no_trust_and_a_repository_cannot_undo_it(person: Person, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[verify]\ndisable = ["mypy"]\n[verify.sandbox]\ntier = "ns"\nprocesses = 9\n')
    (person.folder / "fairwitness.toml").write_text('[verify.sandbox]\ntier = "ll"\nprocesses = 10\n')
    settings, _ = verify_settings(person.folder, user=own)
    assert (settings.disable, settings.sandbox.tier, settings.sandbox.processes) == (
        ("mypy",),
        SandboxTier.NAMESPACES,
        9,
    )
    (person.folder / "fairwitness.toml").write_text('[verify]\ndisable = ["mypy"]\n')
    assert review_settings(person.folder, user=own).asking == ()


NEEDED = [
    ('[verify.setup]\ncommands = [["./setup"]]\n', "verify.setup.commands"),
    ('[verify.setup.env]\nPIP_INDEX_URL = "https://example.org"\n', "verify.setup.env.PIP_INDEX_URL"),
    ('[[verify.check]]\nname = "tests"\nid = "pytest"\nargv = ["true"]\n', "verify.check[0].id"),
    ('[[verify.check]]\nname = "tests"\nargv = ["true"]\nnetwork = true\n', "verify.check[0].network"),
]


@pytest.mark.req("X5")
@pytest.mark.parametrize(("text", "name"), NEEDED)
def test_without_a_setting_that_the_result_depends_on_nothing_runs(person: Person, text: str, name: str) -> None:
    (person.folder / "fairwitness.toml").write_text(text)
    with pytest.raises(NotReady) as caught:
        verify_settings(person.folder, user=NOWHERE)
    assert caught.value.what == f"fairwitness.toml sets {name}, which only counts after you have trusted the file"
    hashed = RepositoryFile(person.folder, text.encode()).sha256
    assert caught.value.next_step == f"fairwitness trust (where nobody can be asked: FAIRWITNESS_TRUST={hashed})"
    trust(person.folder)
    verify_settings(person.folder, user=NOWHERE)


def test_an_agent_of_the_repository_is_not_used_and_not_silently_replaced(person: Person) -> None:
    backend = '[agents.backend.local]\nprovider = "openai"\nbase_url = "http://localhost:1/v1"\n'
    (person.folder / "fairwitness.toml").write_text(
        f'[agents]\ndefault = "local"\n[agents.models]\nstrong = "x"\n{backend}'
    )
    read = agents_settings(person.folder, ROLES, user=NOWHERE)
    assert (read.settings.default, read.settings.models, read.settings.backend) == (None, {}, {})
    for override in (None, "local"):
        with pytest.raises(NotReady, match=r"agents\.default, agents\.models\.strong, agents\.backend\.local"):
            read.refuse_held(override)
    read.refuse_held("claude")
    trust(person.folder)
    trusted = agents_settings(person.folder, ROLES, user=NOWHERE)
    assert (trusted.settings.default, list(trusted.settings.backend), trusted.held) == ("local", ["local"], ())
    trusted.refuse_held(None)


@pytest.mark.parametrize("more", ['key_env = "MY_KEY"\n', 'key_cmd = ["cat", "key"]\n'])
def test_keys_are_refused_even_in_a_trusted_file(person: Person, more: str) -> None:
    text = f'[agents.backend.local]\nprovider = "openai"\nbase_url = "http://localhost:1/v1"\n{more}'
    (person.folder / "fairwitness.toml").write_text(text)
    trust(person.folder)
    with pytest.raises(UsageError, match="no way to a key in a repository"):
        agents_settings(person.folder, ROLES, user=NOWHERE)


@pytest.mark.req("X5")
def test_the_bases_file_needs_trust_of_its_own(person: Person) -> None:
    person.commit("other settings", **{"fairwitness.toml": "[verify]\nmutants = 1\n"})
    trust(person.folder)
    repository = Repository.open(person.folder)
    base = repository.commit("HEAD~1")
    shadow = Shadow.open(state_of(repository) / "git", repository)
    file = file_at(repository, shadow, base, repository.tree_of(base))
    assert file is not None
    assert file.content == WEAKER.encode()
    assert not is_trusted(file)
    (note,) = review_settings(repository.top, only_verify=True, user=NOWHERE, instead=lambda: file).notes
    assert note.endswith(f"to look at them: fairwitness trust --at {base[:12]}")
    trust_file(look_at_trust(person.folder, base))
    assert is_trusted(file)
    (person.folder / "fairwitness.toml").unlink()
    with pytest.raises(UsageError, match=r"there is no fairwitness\.toml in this repository"):
        look_at_trust(person.folder)


def test_a_record_that_cannot_be_read_and_a_shared_folder_stop_instead_of_trusting(
    person: Person, tmp_path: Path
) -> None:
    trust(person.folder)
    state = tmp_path / "state" / "fairwitness"
    state.chmod(0o777)
    with pytest.raises(NotReady, match="can be written by other users"):
        in_force(person.folder)
    state.chmod(0o700)
    with (state / "trust.jsonl").open("a") as file:
        file.write("[]\n")
    with pytest.raises(NotReady, match="is not a record"):
        in_force(person.folder)


def test_settings_that_need_no_trust_do_not_touch_the_users_state(person: Person, tmp_path: Path) -> None:
    (person.folder / "fairwitness.toml").write_text("[verify.sandbox]\nmemory_mb = 512\n")
    assert in_force(person.folder) == WITHOUT
    assert review_settings(person.folder, user=NOWHERE).is_trusted
    assert not (tmp_path / "state").exists()


def test_every_table_is_reviewed() -> None:
    tables = {table for contract in CONTRACTS for table in contract.model_fields}
    assert {"verify", "agents", *tables} == set(TABLES)


def begun_in(top: Path) -> BegunFeature:
    wanted = RunRequest(request="x", is_autonomous=True, agents="cassette", cassettes=top.parent / "recordings")
    return begin_feature(top, wanted)


def till(tmp_path: Path) -> Path:
    os.environ["XDG_STATE_HOME"] = str(tmp_path / "state")
    demo.DEMO.write_cassettes(tmp_path / "recordings")
    return demo.DEMO.lay_out(tmp_path / "till")


def test_a_run_keeps_the_settings_it_began_with_until_they_are_revoked(tmp_path: Path, own_home: None) -> None:
    top = till(tmp_path)
    begun = begun_in(top)
    assert (begun.warnings, begun.order.verify.mutants) == ((), 4)
    file = RepositoryFile(top, (top / "fairwitness.toml").read_bytes())
    assert begun.order.trusted_file == f"sha256:{file.sha256}"
    (top / "fairwitness.toml").write_text("[verify]\nmutants = 1\n")
    repository = Repository.open(top)
    ledger = ledger_in(state_of(repository), repository)
    try:
        feature_parts(repository, ledger, begun.run_id, roles=ROLES)
        with open_database(top) as database:
            record_resumed(top, read_detail(database, begun.run_id).view)
        revoke_trust(top)
        with pytest.raises(NotReady, match="you revoked your trust"):
            feature_parts(repository, ledger, begun.run_id, roles=ROLES)
    finally:
        ledger.close()
    refuse_revoked(tmp_path, file.sha256)  # another machine knows nothing of it


def test_a_run_does_not_go_on_with_agents_that_were_put_into_the_file_later(tmp_path: Path, own_home: None) -> None:
    top = till(tmp_path)
    begun = begun_in(top)
    with (top / "fairwitness.toml").open("a") as file:
        file.write('[agents.backend.cassette-2]\nprovider = "openai"\nbase_url = "http://localhost:1/v1"\n')
    repository = Repository.open(top)
    ledger = ledger_in(state_of(repository), repository)
    try:
        feature_parts(repository, ledger, begun.run_id)  # the person named another agent
        order = begun.order.model_copy(update={"agents": None})
        with pytest.raises(NotReady, match=r"fairwitness\.toml sets agents\.backend\.cassette-2"):
            RunParts(repository, ledger, begun.run_id, order, order.policy.retry)
        trust(top)
        RunParts(repository, ledger, begun.run_id, order, order.policy.retry)
    finally:
        ledger.close()


def test_a_run_in_a_repository_without_trust_says_which_settings_are_left_out(tmp_path: Path, own_home: None) -> None:
    top = till(tmp_path)
    revoke_trust(top)
    begun = begun_in(top)
    (warning,) = begun.warnings
    assert warning.startswith("not in force until you trust fairwitness.toml: verify.mutants; ")
    assert (begun.order.trusted_file, begun.order.verify.mutants) == (None, 10)
    assert len(begun.order.verify.check) == 2, "declared checks that add are harmless"
