"""What can be cut from a benchmark."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from rectom.benchmarks.base import Benchmark
from rectom.story import Question, Story

STORIES = tuple(Story(f"s{number}", ("Anne entered the hall.", "The ball is in the box.")) for number in range(12))
#: Two or three questions a story, those of a kind together.
QUESTIONS = tuple(
    Question(f"{kind}-{story.id}", story.id, "Where is the ball really?", ("box", "bag"), "box", 0)
    for kind in "abc"
    for place, story in enumerate(STORIES)
    if kind != "c" or place % 2
)
BENCHMARK = Benchmark("made", "up", STORIES, QUESTIONS)
SEEDS = st.integers(0, 1000)
COUNTS = st.integers(1, 15)


@given(COUNTS, SEEDS)
def test_stories_are_drawn_with_all_their_questions(count: int, seed: int) -> None:
    drawn = BENCHMARK.drawn(count, seed)
    assert len(drawn.stories) == min(count, len(STORIES))
    told = {story.id for story in drawn.stories}
    assert drawn.questions == tuple(q for q in QUESTIONS if q.story_id in told)
    assert drawn.stories == tuple(story for story in STORIES if story.id in told)


@given(COUNTS, COUNTS, SEEDS)
def test_a_smaller_sample_is_part_of_a_larger_one(one: int, other: int, seed: int) -> None:
    small, large = (BENCHMARK.drawn(count, seed) for count in sorted((one, other)))
    assert {*small.questions} <= {*large.questions}


@given(COUNTS, SEEDS)
def test_what_is_asked_about_a_story_stays_in_view_whatever_is_cut(count: int, seed: int) -> None:
    asked = {
        story.id: ("Where is the ball really?", f"Who is in {story.id}?")[: 1 + place % 2]
        for place, story in enumerate(STORIES)
    }
    both = [replace(q, text=asked[q.story_id][-1] if q.id[0] == "c" else q.text) for q in QUESTIONS]
    benchmark = replace(BENCHMARK, questions=tuple(both)).in_view()
    for cut in (benchmark, benchmark.drawn(count, seed), benchmark.first(count)):
        assert {story.id: story.asked for story in cut.stories} == {story.id: asked[story.id] for story in cut.stories}


def test_every_seed_draws_others_and_every_story_is_drawn() -> None:
    drawn = [BENCHMARK.drawn(3, seed).stories for seed in range(40)]
    assert {story for stories in drawn for story in stories} == {*STORIES}
    assert len({*drawn}) > 30


def test_the_first_questions_are_those_of_the_first_stories() -> None:
    cut = BENCHMARK.first(4)
    assert [q.id for q in cut.questions] == ["a-s0", "a-s1", "b-s0", "b-s1"]
    assert [story.id for story in cut.stories] == ["s0", "s1"]
