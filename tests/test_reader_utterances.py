from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.reader.utterances import appearing, direction, people, speakers, utterance


@pytest.mark.parametrize(
    ("line", "speaker", "words"),
    [
        ("Ann: Hello!", "Ann", "Hello!"),
        ("  Ann:   Hello!  ", "Ann", "Hello!"),
        ("Ann: 10:30 is fine: so be it.", "Ann", "10:30 is fine: so be it."),
        ("Ann: 10:30: the bell rings", "Ann", "10:30: the bell rings"),
        ("Ann:", "Ann", ""),
        ("Ann: one\ntwo", "Ann", "one\ntwo"),
        ("Mary Ann: Hi.", "Mary Ann", "Hi."),
        ("Dr. Smith: Hi.", "Dr. Smith", "Hi."),
        ("J.R. O'Neil-Smith: Hi.", "J.R. O'Neil-Smith", "Hi."),
        ("D’Arcy: Hi.", "D’Arcy", "Hi."),
        ("Éloïse: Salut.", "Éloïse", "Salut."),
        ("李雷: 你好", "李雷", "你好"),
        ("Speaker 2: Hi.", "Speaker 2", "Hi."),
        ("Ann & Ben: Bye!", "Ann & Ben", "Bye!"),
        ("Ann, Mary Lou, and Cy: Bye!", "Ann, Mary Lou, and Cy", "Bye!"),
    ],
)
def test_an_utterance_is_a_speaker_and_words(line: str, speaker: str, words: str) -> None:
    assert utterance(line) == (speaker, words)


@pytest.mark.parametrize(
    "line",
    [
        "10:30: the bell rings",
        "At 10:30 the bell rings.",
        "A dog barks.",
        "Later that day: nothing.",
        "[Ann joins]",
        "https://example.org",
        "(laughter)",
        "- Ann: Hi.",
        "",
    ],
)
def test_other_lines_have_no_speaker(line: str) -> None:
    assert utterance(line) is None


@given(st.text(max_size=80))
def test_any_line_is_an_utterance_or_none(line: str) -> None:
    found = utterance(line)
    assert found is None or line.strip().startswith(f"{found[0]}:")
    assert appearing(line) == ([] if found is None and direction(line) is None else speakers_of(line))


def speakers_of(line: str) -> list[str]:
    """With repetitions, in their order: what stands before the colon or the verb, taken apart."""
    found = utterance(line)
    return people(found[0] if found else line.strip().removeprefix("[").rpartition(" ")[0])


@pytest.mark.parametrize(
    ("line", "verb", "who"),
    [
        ("[Ann joins]", "join", ["Ann"]),
        ("[Ann leaves]", "leave", ["Ann"]),
        ("[Ben and Mary Lou join]", "join", ["Ben", "Mary Lou"]),
        (" [Ben, Cy & Dr. Smith leave] ", "leave", ["Ben", "Cy", "Dr. Smith"]),
        ("[Ann laughs]", None, []),
        ("Ann joins", None, []),
        ("Ann: [Ben joins]", None, ["Ann"]),
        ("[joins]", None, []),
    ],
)
def test_a_stage_direction_says_who_comes_or_goes(line: str, verb: str | None, who: list[str]) -> None:
    assert direction(line) == verb
    assert appearing(line) == who


def test_people_who_speak_together_are_several() -> None:
    assert people("Ann") == ["Ann"]
    assert people("Ann & Mary Lou") == ["Ann", "Mary Lou"]
    assert people("Ann, Ben and Cy") == people("Ann, Ben, and Cy") == people("Ann, Ben & Cy") == ["Ann", "Ben", "Cy"]
    assert people("Sandy Andrews") == ["Sandy Andrews"]


def test_speakers_are_all_who_appear_in_their_order() -> None:
    lines = ("Cy: Hi.", "A dog barks.", "[Ben and Dee join]", "Ann & Cy: Hello.", "[Cy leaves]", "Ben: So.")
    assert speakers(lines) == ("Cy", "Ben", "Dee", "Ann")
