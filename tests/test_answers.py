from __future__ import annotations

import time

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rectom.answers import extract, letters, shown
from rectom.benchmarks.registry import adapter
from tests.published import published

PLACES = ("box", "green_basket", "blue box", "the chest")
BELIEFS = (
    "Noor believes the pitcher contains oat milk.",
    "Noor believes the pitcher contains almond milk.",
)
AWARE = (
    "Kim is unaware of the trip because she was not involved in the conversation.",
    "Kim believes the trip was not cancelled, since the others said so.",
)
VERDICTS = ("entailment", "not_entailment")
CHINESE = ("盒子", "蓝色的盒子", "篮子", "不知道")
WEATHER = ("Yes", "No")
ROOMS = tuple(f"{colour}_{kind}" for colour in ("red", "blue", "green") for kind in ("box", "bag", "tin", "jar", "urn"))
GRADES = ("got an A on her test", "she got an A", "Her answer is sincere", "so I choose to go")
MANY = tuple(f"place {number}" for number in range(101, 131))


@pytest.mark.parametrize(
    ("reply", "place"),
    [
        # an answer, and a reason behind it
        ("The plum is in the box.\n\nReason: The only other option is the chest.", 0),
        ("The chest.\n**Explanation:** Anne left the box before.", 3),
        ("It is the box.\nReason: the chest was seen.\nAnswer: the chest", 3),
        # letters
        ("B", 1),
        ("b", 1),
        (" B \n", 1),
        ("B.", 1),
        ("(b)", 1),
        ("(B)", 1),
        ("b)", 1),
        ("a)", 0),
        ("A", 0),
        ("[B]", 1),
        ("[[B]]", 1),
        ("**B**", 1),
        ("`B`", 1),
        ('"B"', 1),
        ("'B'", 1),
        ("__B__", 1),
        ("$B$", 1),
        ("Option B", 1),
        ("option b.", 1),
        ("So, B.", 1),
        ("It must be b).", 1),
        ("I'd say B", 1),
        ("It is not easy, but B", 1),
        ("Ｂ", 1),
        # texts
        ("green_basket", 1),
        ("green basket", 1),
        ("Green  Basket.", 1),
        ("GREEN_BASKET!", 1),
        ("The green basket.", 1),
        ("a green basket", 1),
        ("chest", 3),
        ("The Chest.", 3),
        ("It is in the chest, where Anne put it.", 3),
        ("**the chest**", 3),
        ("box", 0),
        ("blue box", 2),
        ("the blue_box.", 2),
        ("A box", 0),
        ("A green basket", 1),
        # both
        ("B. green basket", 1),
        ("B) green_basket", 1),
        ("(B) the green basket", 1),
        ("**B. green_basket**", 1),
        ("- B: green basket", 1),
        ("the green basket (option B)", 1),
        ("C. blue box", 2),
        ("A. box", 0),
        ("A. The ball is in the box.", 0),
        ("B green basket", 1),
        # explicit answers
        ("Answer: B", 1),
        ("answer:b", 1),
        ("ANSWER: GREEN BASKET", 1),
        ("**Answer:** B", 1),
        ("**Answer**: `chest`", 3),
        ("Answer - B", 1),
        ("Answer = B", 1),
        ("Answer:\n\nB. green basket", 1),
        ("### Answer\nB", 1),
        ("Final Answer\n\n**D**", 3),
        ("Final answer (A, B, C or D): B", 1),
        ("Answer to the question: B", 1),
        ("Answer: [B]", 1),
        ("Answer: B</s>", 1),
        ("It is A?<|end|><|channel|>final<|message|>Answer: B<|im_end|>", 1),
        ("Answer: <B>", 1),
        ("Answer: A because B was empty", 0),
        ("Answer: b because Anne left", 1),
        ("Answer: B\n\nAnne left before Bob moved it out of the box.", 1),
        ("The box? The chest? Anne saw both.\nAnswer: B", 1),
        ("Answer: A\nNo, Anne left earlier.\nAnswer: B", 1),
        ("I think A. Answer: D", 3),
        ("Let me answer: first she saw the box.\n\nFinal answer: the chest.", 3),
        ("The answer is B.", 1),
        ("The correct answer is **(b)**.", 1),
        ("The correct answer is: B", 1),
        ("The right option is (C) blue box because she did not see the chest.", 2),
        ("Anne saw the box and the chest. I choose D", 3),
        ("\\boxed{B}", 1),
        ("$\\boxed{\\text{B. green basket}}$", 1),
        ("Not A, thus the answer is $\\boxed{B}$.", 1),
        ("<answer>B</answer>", 1),
        ("She saw A and B.\n<answer>the chest</answer>", 3),
        ("<think>A or B? Answer: A</think>\n\nB", 1),
        ("Answer: A, or so it seems</think>Answer: B", 1),
        ('{"answer": "B"}', 1),
        ('{"reason": "not A, answer: C", "answer": "green_basket"}', 1),
        ('```json\n{"Answer": "(b)"}\n```', 1),
        ('Anne saw A.\n{"answer": ["B"]}', 1),
        ("{'answer': 'B'}", 1),
        ('Of {A, B} it is this: {"answer": "B", "why": "not A"}', 1),
        ('{"choice": "B"}', 1),
    ],
)
def test_one_option(reply: str, place: int) -> None:
    assert extract(reply, PLACES) == PLACES[place]


@pytest.mark.parametrize(
    "reply",
    [
        "",
        " \n",
        "?",
        "I do not know.",
        "She would look for the ball.",
        # two options
        "A or B",
        "a or b",
        "Answer: B or c",
        "A/B",
        "A, B",
        "Both A and B",
        "A\nB",
        "a) box or b) green_basket",
        "(a) and (b)",
        "box or chest",
        "blue box or box",
        "the box, not the chest",
        "B. box",
        "Answer: A. green basket",
        "The box. (Option D)",
        "\\boxed{A} or \\boxed{B}",
        "Answer:\nA. box\nB. green basket",
        "Answer: A\nor B",
        "Answer: A\n(B)",
        "Answer: A\nWait, the answer is B.",
        '{"answer": ["A", "B"]}',
        '{"answer": "A"} or b',
        # denied
        "not A",
        "Answer: not (A)",
        "It isn't in the box.",
        "Anything but the chest",
        "neither A",
        "not option A",
        "not in the chest",
        "The answer is not A",
        "A is wrong",
        "B is clearly not right",
        "The chest (D) is impossible",
        # not there
        "E",
        "(e)",
        "Answer: E",
        "E. box",
        "Option F, the chest",
        "Answer: none of these",
        "Answer: 2",
        "baskets",
        "boxes",
        "Answer:",
        "Answer: A-frame",
        "The box.\nAnswer: unclear",
        "<think>It is A",
        '{"answer": null}',
        '{"answer": {}}',
    ],
)
def test_no_option(reply: str) -> None:
    assert extract(reply, PLACES) is None


@pytest.mark.parametrize(
    ("reply", "choices", "place"),
    [
        ("a) Noor believes the pitcher contains oat milk", BELIEFS, 0),
        ("Based on the story, Noor believes the pitcher contains almond milk.", BELIEFS, 1),
        ("a) Noor believes the pitcher contains almond milk.", BELIEFS, None),
        ("Noor believes the pitcher contains milk.", BELIEFS, None),
        ("Answer: Kim is unaware of the trip because she was not involved in the conversation.", AWARE, 0),
        (f"Answer: {AWARE[1]}", AWARE, 1),
        ("B, since she was there.", AWARE, 1),
        ("She went, the others stayed", ("She went, the others stayed.", "She stayed"), 0),
        ("box, red", ("box", "red", "box_red"), None),
        ("not entailment", VERDICTS, 1),
        ("Answer: entailment", VERDICTS, 0),
        ("Not_Entailment.", VERDICTS, 1),
        ("entailment or not entailment", VERDICTS, None),
        ("No", WEATHER, 1),
        ("No, she does not.", WEATHER, 1),
        ("Yes and no", WEATHER, None),
        ("Reason: Anne left the box, and Bob came to the chest.", PLACES, None),
        ("Reason: Anne saw the box.\nThe chest.", PLACES, None),
        ("The box or the chest.\nReason: Anne left the box.", PLACES, None),
        ("Answer: Yes, no one moved it", WEATHER, 0),
        ("Yes, it is no longer there.", WEATHER, 0),
        ("No, no one moved it.", WEATHER, 1),
        ("No one moved it.", WEATHER, None),
        ("I", ROOMS, 8),
        ("I. blue_jar", ROOMS, 8),
        ("Answer: (i)", ROOMS, 8),
        ("Answer: I, because she left.", ROOMS, 8),
        ("I since nobody moved it", ROOMS, 8),
        ("I, Anne, would look in the red box.", ROOMS, 0),
        ("I think it is the red box.", ROOMS, 0),
        ("O", ROOMS, 14),
        ("P", ROOMS, None),
        ("Answer: red box, or I am wrong", ROOMS, 0),
        ("答案：B", CHINESE, 1),
        ("答案：Ｂ。", CHINESE, 1),
        ("答案是（Ｃ）", CHINESE, 2),
        ("【答案】C", CHINESE, 2),
        ("选B", CHINESE, 1),
        ("我选择Ｃ、篮子", CHINESE, 2),
        ("正确答案为：Ａ", CHINESE, 0),
        ("小明没有看到，所以他不知道。", CHINESE, 3),
        ("答案是蓝色的盒子", CHINESE, 1),
        ("答案是A，因为小红没有看到篮子", CHINESE, 0),
        ("小红先看了A和B。\n答案：C", CHINESE, 2),
        ("C. 因为高兴，所以选择了离开。", ("她不高兴", "她没离开", "因为高兴，所以选择了离开。"), 2),
        ("A或B", CHINESE, None),
        ("盒子和篮子", CHINESE, None),
        ("不是A", CHINESE, None),
        ("B不对", CHINESE, None),
        ("答案：E", CHINESE, None),
        ("Anne and I would look in the red box.", ROOMS, 0),
        ("cat", ("a cat", "an owl"), 0),
        ("The owl.", ("a cat", "an owl"), 1),
        ('{"answer": null}', ("none", "box"), None),
        ("Answer: got an A on her test", GRADES, 0),
        ("I think the answer is: she got an A", GRADES, 1),
        ("The correct answer is her answer is sincere.", GRADES, 2),
        ("her answer is sincere, or got an A on her test", GRADES, None),
        ("A", GRADES, 0),
        ("Answer: She left.\n\nHe stayed.", ("He left.", "She left.\n\nHe stayed."), 1),
        ("27", MANY, 26),
        ("Answer: 27", MANY, 26),
        ("27. place 127", MANY, 26),
        ("(30)", MANY, 29),
        ("option 4", MANY, 3),
        ("place 104", MANY, 3),
        ("4. place 105", MANY, None),
        ("after 3 days", MANY, None),
        ("31", MANY, None),
        ("B", MANY, None),
        ("blue  box", ("Blue box", "red box"), 0),
        ("3", ("2", "3"), 1),
        ("B. yes", ("yes", "Yes"), 1),
        ("YES", ("yes", "Yes"), None),
        ("+", ("+", "-"), 0),
        ("B", (), None),
    ],
)
def test_other_questions(reply: str, choices: tuple[str, ...], place: int | None) -> None:
    assert extract(reply, choices) == (None if place is None else choices[place])


WORDS = st.sampled_from("box basket chest red blue green hall ball Noor milk oat almond left sees dog cat tree".split())
OPTIONS = st.lists(st.lists(WORDS, min_size=1, max_size=3).map("_".join), min_size=2, max_size=40, unique=True)


@st.composite
def asked(draw: st.DrawFn) -> tuple[list[str], int, int]:
    """Options, and the places of two of them."""
    choices = draw(OPTIONS)
    first, second = draw(st.permutations(range(len(choices))))[:2]
    return choices, first, second


@given(st.text(), st.lists(st.text(), max_size=30))
def test_any_text_gives_an_option_or_none(reply: str, choices: list[str]) -> None:
    assert extract(reply, choices) in {None, *choices}


@given(
    st.lists(
        st.sampled_from([*"ABIabi(){}[].:,\"'*\n ", "\\boxed{", "Answer", "not", "box", "答案", "\ud800", '"answer"'])
    ),
)
def test_pieces_of_answers_give_an_option_or_none(pieces: list[str]) -> None:
    assert extract("".join(pieces), PLACES) in {None, *PLACES}


@given(asked(), st.sampled_from(["{}", "({})", "{}.", "**{}**", "Answer: {}", "\\boxed{{{}}}", "The answer is {}."]))
def test_a_letter_gives_its_option(question: tuple[list[str], int, int], form: str) -> None:
    choices, first, _ = question
    letter = letters(choices)[first]
    assert extract(form.format(letter), choices) == choices[first]
    assert extract(form.format(letter.lower()), choices) == choices[first]


@given(asked(), st.sampled_from(["{}", "The {}.", "**{}**", "Answer: {}", "{}!", "in the {}"]))
def test_a_text_gives_its_option(question: tuple[list[str], int, int], form: str) -> None:
    choices, first, _ = question
    text = choices[first]
    for said in (text, text.upper(), text.replace("_", " ")):
        assert extract(form.format(said), choices) == choices[first]


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=30, unique_by=str.strip))
def test_any_options_own_text_gives_it(choices: list[str]) -> None:
    for choice in choices:
        assert extract(f" {choice}\n", choices) == choice


@given(asked(), st.sampled_from(["", "Answer: ", "The answer is "]), st.sampled_from([" or ", "\nor ", " and ", ", "]))
def test_a_second_option_makes_it_no_answer(question: tuple[list[str], int, int], form: str, joint: str) -> None:
    choices, first, second = question
    called = letters(choices)
    for one in (called[first], choices[first], f"({called[first]}) {choices[first]}"):
        for other in (f"({called[second]})", choices[second], f"{called[second]}. {choices[second]}"):
            assert extract(f"{form}{one}{joint}{other}", choices) is None


@given(asked())
def test_a_letter_with_another_options_text_is_no_answer(question: tuple[list[str], int, int]) -> None:
    choices, first, second = question
    assert extract(f"{letters(choices)[first]}. {choices[second]}", choices) is None


@given(asked())
def test_what_is_shown_is_read_back(question: tuple[list[str], int, int]) -> None:
    choices, _, _ = question
    lines = shown(choices).split("\n")
    assert [extract(line, choices) for line in lines] == choices
    assert extract(shown(choices), choices) is None


def test_options_are_shown_by_letters_and_beyond_26_by_numbers() -> None:
    assert shown(PLACES) == "A. box\nB. green_basket\nC. blue box\nD. the chest"
    assert shown(["one\n B. two"]) == "A. one B. two"
    assert letters(MANY[:26])[-1] == "Z"
    assert letters(MANY)[-1] == "30"
    assert shown(MANY).startswith("1. place 101\n2. ")
    assert (letters([]), shown([])) == ((), "")


@given(st.sampled_from(PLACES), st.text(max_size=30))
def test_an_answer_in_json_is_found(choice: str, reason: str) -> None:
    reply = orjson.dumps({"reason": reason, "answer": choice}).decode()
    assert extract(reply, PLACES) == choice


@pytest.mark.parametrize(
    ("name", "subset"),
    [("bigtom", "400"), ("fantom", "324"), ("socialiqa", "dev"), ("tombench", "discrepant-intentions-zh-once")],
)
def test_every_form_names_the_options_of_published_questions(name: str, subset: str) -> None:
    questions = adapter(name).open(subset, published(name)).questions[:150]
    for question in questions:
        for letter, choice in zip(letters(question.choices), question.choices, strict=True):
            for form in (f"{letter}. {choice}", f"Answer: ({letter.lower()}) {choice}", f"The answer is {choice}"):
                assert extract(form, question.choices) == choice, form
            for other in set(question.choices) - {choice}:
                assert extract(f"{choice} or {other}", question.choices) is None


def test_what_stands_behind_a_line_that_is_no_option_is_no_part_of_the_answer() -> None:
    assert extract("Answer: A\nThe other one would be:\nB", ["box", "bag"]) == "box"
    assert extract("Answer: A\nB", ["box", "bag"]) is None


@pytest.mark.parametrize(
    "piece",
    ["a ", "<think>", "{", "Answer: ", "(A) ", "answer is ", "box ", "\\boxed{", "not ", "the ", "I choose ", "\n"],
)
def test_long_replies_take_no_long_time(piece: str) -> None:
    start = time.process_time()
    extract(piece * (100_000 // len(piece)), PLACES)
    assert time.process_time() - start < 5
