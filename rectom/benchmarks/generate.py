"""Fresh stories in Hi-ToM's own schema and grammar, with gold answers from the rules that its labels follow.

What recurs, how often people move things, where the claims stand: all as measured on the published stories. Of
several drawn stories the one is kept in which the most orders are answered differently from the order before, so
that a reader who stops at a lower order is found out. Longer chains than four need a longer cast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Literal, TypeVar

import orjson

from rectom.benchmarks.hitom import write_choices
from rectom.errors import SettingsError
from rectom.facts import value_of
from rectom.grammar import belief_question
from rectom.perspective import Perspective
from rectom.reader.rules import RuleReader
from rectom.rules import PRESETS, WAITING_ROOM
from rectom.story import Story

LONGEST: Final = 8  #: the highest order

_CAST: Final = (5, 3, 4)  #: people in each chapter
_OPTIONS: Final = 15
_POOLS: Final = (slice(0, 7), slice(7, 11), slice(11, 15))  #: which of them stand in the room of each chapter

#: How often, in Hi-ToM: a line follows a distraction; someone moves the object; he takes it back, for each container
#: that it was in before; he "moves" it to where it is; a chapter goes back to an earlier room, and to its object;
#: the first claim is public; a listener was not in the chapter.
_NOISE, _MOVE, _BACK, _NO_OP = 0.09, 0.49, 0.15, 0.01
_RETURN, _SAME_OBJECT = 0.4, 0.6
_PUBLIC, _ABSENT = 0.7, 0.2

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Words:
    """The lists that a vocabulary draws from."""

    names: tuple[str, ...]
    rooms: tuple[str, ...]
    objects: tuple[str, ...]
    containers: tuple[str, ...]
    animals: tuple[str, ...]
    belongings: tuple[str, ...]


def _each(colours: str, kinds: str) -> tuple[str, ...]:
    return tuple(f"{colour}_{kind}" for colour in colours.split() for kind in kinds.split())


#: `hitom`: the names that occur in the published file. `fresh`: none of them.
VOCABULARIES: Final = {
    "hitom": Words(
        names=tuple(
            "Abigail Aiden Alexander Amelia Ava Avery Benjamin Carter Charlotte Chloe Elizabeth Ella Emily Emma "
            "Evelyn Hannah Isabella Isla Jack Jackson Jacob Liam Lily Logan Mila Nathan Noah Owen Sophia "
            "William".split()
        ),
        rooms=tuple(
            "TV_room attic back_yard basement bathroom bedroom cellar closet crawlspace den dining_room front_yard "
            "garage garden hall hallway kitchen laundry living_room lounge master_bedroom office pantry patio "
            "playroom porch staircase study sunroom workshop".split()
        ),
        objects=tuple(
            "apple asparagus banana beans cabbage carrot cherry corn cucumber eggplant grapes green_pepper lemon "
            "lettuce lime melon onion orange peach pear peas persimmon plum potato spinach sweet_potato tangerine "
            "tomato turnip watermelon".split()
        ),
        containers=(
            *_each("blue green", "bathtub bottle bucket crate cupboard drawer pantry treasure_chest"),
            *_each("red", "basket bottle box bucket container crate drawer envelope pantry"),
            *("blue_container", "blue_suitcase", "green_basket", "green_box", "green_envelope"),
        ),
        animals=("cat", "dog", "monkey", "mouse"),
        belongings=("gloves", "phone", "watch"),
    ),
    "fresh": Words(
        names=tuple(
            "Agnes Bruno Clara Dmitri Edith Farid Greta Hugo Ingrid Joris Kenji Leila Marta Nils Olga Pablo Quentin "
            "Rosa Selma Tomas Ursula Viktor Wanda Xenia Yusuf Zelda Anouk Bashir Carmen Dario".split()
        ),
        rooms=tuple(
            "library chapel boathouse observatory greenhouse bakery archive stable gallery foyer sauna studio "
            "laboratory theatre barn conservatory vestry refectory dormitory lighthouse scullery armory mezzanine "
            "terrace veranda cloakroom".split()
        ),
        objects=tuple(
            "compass kettle violin stapler lantern thimble teapot hammer marble candle notebook ribbon whistle "
            "magnet trumpet saddle ladle anchor pencil mirror domino feather goblet spanner ticket".split()
        ),
        containers=_each("wooden silver purple striped", "jar trunk barrel tin sack hamper locker urn"),
        animals=("heron", "hedgehog", "goat", "beetle"),
        belongings=("scarf", "wallet", "umbrella"),
    ),
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """What to generate: the same recipe gives the same bytes. Raises SettingsError for values that make no story.

    `chapters` is Hi-ToM's story length; `tell` whether people make claims; each story has a question of every
    order from 0 to `max_order`. `wording` is `classic` as in the published file, or `now` as in newer ones.
    """

    stories: int = 40
    chapters: int = 1
    tell: bool = True
    max_order: int = 4
    seed: int = 0
    vocabulary: Literal["hitom", "fresh"] = "hitom"
    wording: Literal["classic", "now"] = "classic"

    def __post_init__(self) -> None:
        faults = {
            "stories: at least 1": self.stories < 1,
            "chapters: 1, 2 or 3": self.chapters not in {1, 2, 3},
            f"max_order: 0 to {LONGEST}": not 0 <= self.max_order <= LONGEST,
            "seed: 0 or more": self.seed < 0,
            "vocabulary: hitom or fresh": self.vocabulary not in VOCABULARIES,
            "wording: classic or now": self.wording not in {"classic", "now"},
        }
        if wrong := [rule for rule, broken in faults.items() if broken]:
            raise SettingsError(f"cannot generate such stories; choose {', '.join(wrong)}")


class Dice:
    """Draws made of `Random.random` alone: the only method whose sequence Python keeps between versions."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 - stories, not secrets

    def chance(self, share: float) -> bool:
        """True in that share of the cases."""
        return self._random.random() < share

    def pick(self, items: Sequence[_T]) -> _T:
        """One of the items."""
        return items[int(self._random.random() * len(items))]

    def some(self, items: Sequence[_T], count: int) -> list[_T]:
        """That many different items in random order."""
        rest = list(items)
        return [rest.pop(int(self._random.random() * len(rest))) for _ in range(count)]


@dataclass(slots=True)
class _Place:
    """A room as the story knows it: the containers that may stand there, and where its object has been."""

    room: str
    thing: str
    pool: list[str]
    been: list[str]

    @property
    def untouched(self) -> list[str]:
        return [container for container in self.pool if container not in self.been]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A drawn story: its lines, its options, and chapter 1's chain and object."""

    lines: tuple[str, ...]
    options: tuple[str, ...]
    chain: tuple[str, ...]
    thing: str

    def questions(self) -> list[str]:
        """A question of each order; their chains are suffixes of one another."""
        return [belief_question(chain, self.thing) for chain in self.chains()]

    def chains(self) -> list[tuple[str, ...]]:
        orders = range(len(self.chain) + 1)
        return [self.chain[len(self.chain) - order :] for order in orders]

    def golds(self) -> list[str | None]:
        """The answers of each order by the rules that Hi-ToM's labels follow; None where no belief is settled."""
        reader = RuleReader(PRESETS["hitom"])
        world = reader.world(Story("drawn", self.lines))
        return [value_of(_along(reader, world, chain).final, "in", self.thing) for chain in self.chains()]


def _along(reader: RuleReader, world: Perspective, chain: Sequence[str]) -> Perspective:
    for name in chain:
        world = reader.perspective(world, name)
    return world


def generate(recipe: Recipe) -> bytes:
    """A file of Hi-ToM's schema as JSON: `recipe.stories` different stories, `recipe.max_order + 1` rows each."""
    dice = Dice(recipe.seed)
    rows: list[dict[str, object]] = []
    seen: set[tuple[str, ...]] = set()
    while len(seen) < recipe.stories:
        drawn, golds = _best(recipe, dice)
        if drawn.lines in seen:
            continue
        seen.add(drawn.lines)
        text = "".join(f"{number} {line}\n" for number, line in enumerate(drawn.lines, 1))
        for order, (question, gold) in enumerate(zip(drawn.questions(), golds, strict=True)):
            rows.append(
                {
                    "prompting_type": "CoTP",
                    "deception": recipe.tell,
                    "story_length": recipe.chapters,
                    "question_order": order,
                    "sample_id": len(rows),
                    "story": f"{text}\n",
                    "question": question,
                    "choices": write_choices(drawn.options),
                    "answer": gold,
                }
            )
    return orjson.dumps({"data": rows}, option=orjson.OPT_INDENT_2) + b"\n"


def _best(recipe: Recipe, dice: Dice) -> tuple[_Drawn, list[str]]:
    """Of some drawn stories, all of whose beliefs are settled, the one that tells the orders apart best."""
    found: list[tuple[_Drawn, list[str]]] = []
    while len(found) < max(2, recipe.max_order // 2):
        drawn = _draw(recipe, dice)
        golds = [gold for gold in drawn.golds() if gold in drawn.options]
        if len(golds) == recipe.max_order + 1:
            found.append((drawn, golds))
    return max(found, key=lambda pair: sum(map(str.__ne__, pair[1], pair[1][1:])))


def _draw(recipe: Recipe, dice: Dice) -> _Drawn:
    words = VOCABULARIES[recipe.vocabulary]
    options = dice.some(words.containers, _OPTIONS)
    teller = _Teller(dice, words, " now." if recipe.wording == "now" else ".", options)
    cast = dice.some(words.names, max(_CAST[0], recipe.max_order))
    casts = [cast, *(dice.some(cast, size) for size in _CAST[1 : recipe.chapters])]
    lines: list[str] = []
    for number, people in enumerate(casts):
        place = teller.place(number)
        lines += teller.chapter(people, place, cast)
        # Hi-ToM leaves the chapter before the last one without claims, so the first of two has none.
        if recipe.tell and number != recipe.chapters - 2:
            lines += teller.claims(people, place, cast)
    shown = dice.some(options, _OPTIONS)
    return _Drawn(tuple(lines), tuple(shown), tuple(dice.some(cast, recipe.max_order)), teller.places[0].thing)


class _Teller:
    """Tells chapters; remembers which rooms and objects the story has had."""

    def __init__(self, dice: Dice, words: Words, stop: str, options: Sequence[str]) -> None:
        self.dice, self.words, self.stop, self.options = dice, words, stop, options
        self.places: list[_Place] = []

    def place(self, number: int) -> _Place:
        """Where a chapter happens: back in a room of the story, about its object or another one; or in a new room."""
        dice, words = self.dice, self.words
        back = dice.pick(self.places) if self.places and dice.chance(_RETURN) else None
        if back and dice.chance(_SAME_OBJECT):
            return back
        thing = dice.pick([thing for thing in words.objects if thing not in {p.thing for p in self.places}])
        if back and len(back.untouched) > 1:
            place = _Place(back.room, thing, back.untouched, [])
        else:
            room = dice.pick([room for room in words.rooms if room not in {p.room for p in self.places}])
            place = _Place(room, thing, list(self.options[_POOLS[number]]), [])
        place.been.append(dice.pick(place.pool))
        self.places.append(place)
        return place

    def chapter(self, people: Sequence[str], place: _Place, cast: Sequence[str]) -> Iterator[str]:
        """The lines of a chapter: all enter; each in turn moves the object or not, and leaves; all wait."""
        for line in self._deeds(people, place):
            if self.dice.chance(_NOISE):
                yield self._noise(cast)
            yield line

    def _deeds(self, people: Sequence[str], place: _Place) -> Iterator[str]:
        everybody = f"{', '.join(people[:-1])} and {people[-1]}"
        yield f"{everybody} entered the {place.room}."
        yield f"The {place.thing} is in the {place.been[-1]}{self.stop}"
        for name in people:
            if self.dice.chance(_MOVE):
                place.been.append(self._target(place))
                yield f"{name} moved the {place.thing} to the {place.been[-1]}."
            else:
                yield f"{name} made no movements and stayed in the {place.room} for 1 minute."
            yield f"{name} exited the {place.room}."
        yield f"{everybody} entered the {WAITING_ROOM}."

    def _target(self, place: _Place) -> str:
        here = place.been[-1]
        if self.dice.chance(_NO_OP):
            return here
        old = [container for container in dict.fromkeys(place.been) if container != here]
        new = place.untouched
        return self.dice.pick(old if not new or self.dice.chance(_BACK * len(old)) else new)

    def _noise(self, cast: Sequence[str]) -> str:
        dice, words = self.dice, self.words
        distraction = dice.pick(
            [
                f"likes the {dice.pick(words.containers)}",
                f"dislikes the {dice.pick(words.objects)}",
                f"saw a {dice.pick(words.animals)}",
                f"lost his {dice.pick(words.belongings)}",
            ]
        )
        return f"{dice.pick(cast)} {distraction}."

    def claims(self, people: Sequence[str], place: _Place, cast: Sequence[str]) -> Iterator[str]:
        """Two claims by different people, in the order in which they left, where the chapter's object is."""
        speakers = self.dice.some(people, 2)
        for number, speaker in enumerate(sorted(speakers, key=people.index)):
            where = self.dice.pick([place.been[-1:], place.been, place.untouched or place.been])
            container = self.dice.pick(where)
            if number == 0 and self.dice.chance(_PUBLIC):
                said = f"{speaker} publicly claimed that "
                yield said + self._is_in(place.thing, container, "" if self.stop == "." else "the ")
            else:
                others = [name for name in people if name != speaker]
                absent = [name for name in cast if name not in people]
                hearer = self.dice.pick(absent if absent and self.dice.chance(_ABSENT) else others)
                yield f"{speaker} privately told {hearer} that " + self._is_in(place.thing, container, "the ")

    def _is_in(self, thing: str, container: str, article: str) -> str:
        return f"{article}{thing} is in the {container}{self.stop}"
