"""Keys come from three places and are shown in none."""

import copy
import itertools
import os
import pickle
import stat
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.agents.gateway.keys import STRUCK_OUT, Eraser, Key, find_key
from fairwitness.errors import FairWitnessError, NotReady, UsageError

SECRET = "sk-ant-0123456789-abcdef/+"
NOWHERE: dict[str, str] = {}


def _file(folder: Path, content: str = SECRET, mode: int = 0o600) -> Path:
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / "acme"
    path.write_text(content)
    path.chmod(mode)
    return path


def _command(*words: str) -> tuple[str, ...]:
    return (sys.executable, "-c", *words)


@pytest.mark.req("X3")
def test_each_of_the_three_ways_gives_the_key(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    by_name = find_key("acme", variable="ACME_KEY", environment={"ACME_KEY": SECRET}, folder=keys)
    by_command = find_key("acme", command=_command(f"print({SECRET!r}); print('and more')"), folder=keys)
    _file(keys, f"{SECRET}\nthe rest is a note\n")
    by_file = find_key("acme", variable="ACME_KEY", environment=NOWHERE, folder=keys)
    assert [key.reveal() for key in (by_name, by_command, by_file)] == [SECRET] * 3
    assert "ACME_KEY" in by_name.source
    assert "key_cmd" in by_command.source
    assert str(keys / "acme") in by_file.source


def test_the_environment_goes_before_the_command_and_the_command_before_the_file(tmp_path: Path) -> None:
    _file(tmp_path / "keys", "from-the-file")
    command = _command("print('from-the-command')")
    environment = {**os.environ, "ACME_KEY": "from-the-environment"}
    first = find_key("acme", variable="ACME_KEY", command=command, environment=environment, folder=tmp_path / "keys")
    second = find_key("acme", command=command, folder=tmp_path / "keys")
    assert (first.reveal(), second.reveal()) == ("from-the-environment", "from-the-command")


@pytest.mark.req("X3")
def test_without_a_key_one_sentence_names_the_three_ways(tmp_path: Path) -> None:
    with pytest.raises(NotReady) as caught:
        find_key("acme", variable="ACME_KEY", environment=NOWHERE, folder=tmp_path / "keys")
    assert "ACME_KEY" in caught.value.what
    assert "key_cmd" in caught.value.what
    assert str(tmp_path / "keys" / "acme") in caught.value.what
    assert "\n" not in caught.value.what
    assert "fairwitness.toml" in caught.value.next_step


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644, 0o610])
def test_a_file_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    _file(tmp_path / "keys", mode=mode)
    with pytest.raises(NotReady, match="by others") as caught:
        find_key("acme", environment=NOWHERE, folder=tmp_path / "keys")
    assert SECRET not in str(caught.value)


def test_a_link_of_ones_own_is_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "vault"
    real = _file(elsewhere)
    (tmp_path / "keys").mkdir(mode=0o700)
    (tmp_path / "keys" / "acme").symlink_to(real)
    assert find_key("acme", environment=NOWHERE, folder=tmp_path / "keys").reveal() == SECRET


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_or_a_link_of_somebody_else_is_refused(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    path = _file(keys)
    os.chown(path, 12345, 12345)
    with pytest.raises(NotReady, match="no plain file of yours"):
        find_key("acme", environment=NOWHERE, folder=keys)
    path.unlink()
    path.symlink_to(_file(tmp_path / "vault"))
    os.chown(path, 12345, 12345, follow_symlinks=False)
    with pytest.raises(NotReady, match="another user made"):
        find_key("acme", environment=NOWHERE, folder=keys)


def test_a_folder_in_which_others_could_swap_the_file_is_refused(tmp_path: Path) -> None:
    _file(tmp_path / "keys")
    (tmp_path / "keys").chmod(0o777)
    with pytest.raises(NotReady, match="can be written by others"):
        find_key("acme", environment=NOWHERE, folder=tmp_path / "keys")


def test_a_link_into_a_folder_that_others_can_write_is_refused(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    real = _file(shared)
    shared.chmod(0o777 | stat.S_ISVTX)
    (tmp_path / "keys").mkdir(mode=0o700)
    (tmp_path / "keys" / "acme").symlink_to(real)
    with pytest.raises(NotReady, match="can be written by others"):
        find_key("acme", environment=NOWHERE, folder=tmp_path / "keys")


def test_a_ring_of_links_and_a_pipe_are_refused_and_nobody_waits(tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.mkdir(mode=0o700)
    (keys / "acme").symlink_to("acme")
    with pytest.raises(NotReady, match="links"):
        find_key("acme", environment=NOWHERE, folder=keys)
    os.mkfifo(keys / "pipe", 0o600)
    with pytest.raises(NotReady, match="no plain file"):
        find_key("pipe", environment=NOWHERE, folder=keys)


@pytest.mark.parametrize("name", ["../acme", "a/b", "", "."])
def test_a_provider_whose_name_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        find_key(name, environment=NOWHERE, folder=tmp_path)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (f"import sys; print({SECRET!r}); sys.exit(3)", "ended with 3"),
        ("import sys; sys.stderr.write('locked')", "no key"),
        ("print('short')", "no key"),
        ("print('two words here')", "no key"),
        ("print('caf\\u00e9-caf\\u00e9-caf\\u00e9')", "no key"),
        ("print('a' * 100_000)", "more than a key"),
    ],
)
def test_a_command_that_gives_no_key_is_an_error_and_not_a_reason_to_try_the_file(
    tmp_path: Path, program: str, words: str
) -> None:
    _file(tmp_path / "keys", "another-key-entirely")
    with pytest.raises(NotReady, match=words) as caught:
        find_key("acme", command=_command(program), folder=tmp_path / "keys")
    assert SECRET not in f"{caught.value} {caught.value.next_step} {caught.value.__cause__!r}"


def test_a_command_that_is_not_there_is_named_without_its_arguments(tmp_path: Path) -> None:
    with pytest.raises(NotReady, match="could not be started") as caught:
        find_key("acme", command=("/no/such/program", SECRET), folder=tmp_path)
    assert SECRET not in f"{caught.value} {caught.value.next_step}"


def test_a_command_that_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    mark = tmp_path / "child"
    program = (
        "import subprocess, sys, time; "
        f"p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
        f"open({str(mark)!r}, 'w').write(str(p.pid)); print('{SECRET}', flush=True); time.sleep(60)"
    )
    with pytest.raises(NotReady, match="did not end within"):
        find_key("acme", command=_command(program), folder=tmp_path, command_s=1.5)
    status = Path(f"/proc/{mark.read_text()}/stat")
    give_up = time.monotonic() + 10
    while status.exists() and status.read_text().split()[2] != "Z":
        assert time.monotonic() < give_up
        time.sleep(0.05)


def test_what_a_command_leaves_running_does_not_hold_us_up(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys; "
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True); "
        f"print('{SECRET}')"
    )
    key = find_key("acme", command=_command(program), folder=tmp_path, command_s=1.0)
    assert key.reveal() == SECRET


def test_a_key_is_not_shown_copied_into_a_file_or_part_of_an_error() -> None:
    key = Key(SECRET, "the test")
    assert SECRET not in f"{key} {key!r} {[key]}"
    with pytest.raises(TypeError):
        pickle.dumps(key)
    with pytest.raises(TypeError):
        copy.deepcopy(key)
    with pytest.raises(FairWitnessError) as caught:
        Key(f"{SECRET}\r\nx-evil: 1", "the test")
    assert SECRET not in str(caught.value)


def _pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[one:other] for one, other in itertools.pairwise(places)]


@given(
    before=st.binary(max_size=40),
    between=st.binary(max_size=10),
    cuts=st.lists(st.integers(0, 200), max_size=12),
    spelling=st.sampled_from(Key(SECRET, "the test").spellings()),
)
def test_however_a_stream_is_cut_no_spelling_of_the_key_comes_out(
    before: bytes, between: bytes, cuts: list[int], spelling: bytes
) -> None:
    eraser = Eraser(Key(SECRET, "the test"))
    data = before + spelling + between + spelling
    out = b"".join(map(eraser.feed, _pieces(data, cuts))) + eraser.end()
    assert spelling not in out
    assert STRUCK_OUT in out


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=12))
def test_what_holds_no_key_comes_out_as_it_went_in(data: bytes, cuts: list[int]) -> None:
    eraser = Eraser(Key("zq!zq!zq!zq!", "the test"))
    assert b"".join(map(eraser.feed, _pieces(data, cuts))) + eraser.end() == data


def test_only_what_may_be_the_beginning_of_a_key_is_held_back() -> None:
    eraser = Eraser(Key(SECRET, "the test"), None)
    assert eraser.feed(b"data: hello\n\n") == b"data: hello\n\n"
    assert eraser.feed(b"data: sk-an") == b"data: "
    assert eraser.feed(b"tics\n\n") == b"sk-antics\n\n"
    assert Eraser(None).feed(SECRET.encode()) == SECRET.encode()
