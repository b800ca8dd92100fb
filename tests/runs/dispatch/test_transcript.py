"""A transcript is bounded, can always be written, and holds no secret."""

import json
from pathlib import Path

from fairwitness.contracts.agents.dispatch import Happening, Kind
from fairwitness.kit.json_text import parse_lines
from fairwitness.runs.dispatch.transcript import HALF, TEXT, Transcript, keep
from fairwitness.store.artifacts import Store


def lines(transcript: Transcript) -> list[dict[str, object]]:
    return [json.loads(line) for line in transcript.content().decode().splitlines()]


def said(text: str, **more: object) -> Happening:
    return Happening.model_validate({"kind": Kind.TEXT, "ms": 1, "text": text, **more})


def test_a_secret_is_taken_out_of_words_and_arguments() -> None:
    transcript = Transcript()
    secret = "ghp_" + "a1" * 18
    transcript.tell(said(f"my token is {secret}", args={"env": [secret], secret: 1}))
    assert secret not in transcript.content().decode()


def test_one_endless_text_is_shortened() -> None:
    transcript = Transcript()
    transcript.tell(said("x" * (TEXT + 5)))
    (line,) = lines(transcript)
    assert str(line["text"]).endswith("… [5 more characters]")


def test_beginning_and_end_are_kept_of_what_is_too_long() -> None:
    transcript = Transcript()
    for number in range(400):
        transcript.tell(said(f"{number} {'y' * 60_000}"))
    kept = transcript.content()
    texts = [str(line["text"]).split()[0] for line in lines(transcript)]
    assert len(kept) < 2 * HALF + 100_000
    assert (texts[0], texts[-1]) == ("0", "399")
    assert any("lines were too many to be kept" in str(line["text"]) for line in lines(transcript))


def test_what_json_has_no_word_for_breaks_nothing() -> None:
    transcript = Transcript()
    transcript.tell(said("half \ud800", args={"nan": float("nan"), "deep": [{"inf": float("inf")}]}))
    (line,) = parse_lines(transcript.content().decode())
    assert line["args"] == {"nan": None, "deep": [{"inf": None}]}


def test_the_same_transcript_is_stored_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    first, second = keep(store, b"said\n"), keep(store, b"said\n")
    assert first == second
    assert store.get(f"outputs/{first.removeprefix('sha256:')}", sha256=first) == b"said\n"
