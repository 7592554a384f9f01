r"""Which option a free-text reply gives: strictly, so that a reply that names two options gives none.

What counts is the last explicit answer (`Answer: …`, `\boxed{…}`, `<answer>…</answer>`, the field `answer` of a JSON
object), else what follows `the answer is`, else what stands before `Reason: …`, else the whole reply. In it an option
is named by its letter or by its text, in which case, articles, blanks and punctuation do not count. All that is named
must be one option.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from string import ascii_uppercase
from typing import Final, TypeAlias
from unicodedata import normalize

import orjson

#: Bump when a reply is read in another way: cached answers are found by it. Where a server does not keep to a schema,
#: its replies are read in this way as well; for those bump `schemas.VERSION`, too.
VERSION: Final = 3

#: The options (by their place) that one mention can mean; none where it means an option that is not there or denied.
Meant: TypeAlias = frozenset[int]

#: Stands where an option's text was found.
_MARK: Final = "\0"

_THOUGHT = re.compile(r"</?(?:think|thinking|thought|reasoning)>", re.I)
_LATEX = re.compile(r"\\(?:text|textbf|textit|textrm|texttt|mathbf|mathrm|mbox)\s*\{([^{}\n]*)\}")
_BOX = re.compile(r"\\f?box(?:ed)?\s*\{([^{}\n]*)\}")
_TAG = re.compile(r"<(/?)(?:final_?)?answer>", re.I)
_TOKEN = re.compile(r"</s>|<\|\w+\|>|<(?:eos|end_of_turn)>")
_MARKUP = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', **dict.fromkeys("*`#$>\0")})

_ANSWER = r"\b(?:answers?|ans)\b(?:\s*\([^)\n]{0,40}\)|\s+(?:to|for)\s[^:=\n]{0,60})?"
_IS = r"\s+(?:is|would\s+be|should\s+be|must\s+be)\b"

#: An explicit answer: `Final answer (A or B): …`, `答案：…`, or a line that says no more than `Answer`.
_EXPLICIT = re.compile(
    rf"{_ANSWER}(?:{_IS})?[\"']?\s*[:=]|\banswer\s+[-–—]+\s|答案\s*[是为选]?\s*:"
    r"|^[^\w\n]*(?:(?:my|the|final|correct)[ \t]+)*answer[^\w\n]*$",
    re.I | re.M,
)

#: An answer in a sentence: `the correct answer is …`, `I choose …`, `答案是…`, `应选…`.
_STATED = re.compile(
    rf"(?:{_ANSWER}|\b(?:correct|right|best)\s+(?:option|choice)){_IS}(?=.*[\w\0])"
    r"|\bI(?:\s+would|'d)?\s+(?:choose|pick|select|go\s+with)\b(?=.*[\w\0])"
    r"|(?:答案|选项)\s*(?:应该?)?\s*[是为选]|答案\s*(?=[A-Z])|(?:[我应该故]|因此|所以)\s*选择?",
    re.I,
)

_REASON = re.compile(r"\b(?:because|since)\b|因为", re.I)

#: A reason in a paragraph of its own, behind the answer: `Reason: …`, `Explanation: …`.
_REASONED = re.compile(
    r"^[^\w\n]*(?:reason(?:s|ing)?|explanation|rationale|justification|理由|原因|解释)\s*:", re.I | re.M
)

_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|never|neither|nor|no|except|excluding|without|than|instead\s+of|(?:anything|all)\s+but|cannot)"
    r"|n't|不是|并非|不选|不应?该?选|不在|而非|除了|排除)"
    r"(?:\s+(?:be|in|at|on|inside|under|to|an?|the|option|choice|answer|letter|necessarily|just|really))*"
    r"(?:选项)?[\s\"'(\[]*\Z",
    re.I,
)
_DENIED_AFTER = re.compile(
    r"[\"')\]]*\s*(?:"
    r"(?:(?:is|was|are|were|seems|(?:would|can|could)\s+be)\s+(?:\w+ly\s+)?)?"
    r"(?:not|wrong|incorrect|false(?!\s+belief)|impossible|excluded|ruled\s+out)\b"
    r"|(?:is|was|are|were|ca)n't\b|cannot\b|是?错|不对|不正确|是?不)",
    re.I,
)

_LETTER = re.compile(r"(?<![A-Za-z0-9À-ɏ])(?<!\w[.'])([A-Za-z])(?![A-Za-z0-9À-ɏ]|[.'-][A-Za-z])")
_NUMBER = re.compile(r"(?<![\w.,])([0-9]+)(?![\w%]|[.,][0-9])")
_CALLED = re.compile(r"(?:\b(?:option|choice|answer|letter|number)|选项?|选择)\s*[\"'(\[]*\Z", re.I)
_NO_ARTICLE = re.compile(r"\s*(?:\Z|[^\w\s\0-]|-+\s|(?:or|and|is|was|because|since|but|would|with|not)\b)")
#: What follows a letter at the beginning that labels an option: less after an article or a pronoun.
_HEADS: Final = {
    "A": re.compile(r"[.:,)\]–—\n]| [–—-]|\s*/|\s+(?:or|and|because|since)\b", re.I),
    "I": re.compile(r"[.:)\]–—\n]| [–—-]|\s*/|\s+or\b|,?\s+(?:because|since)\b|(?:,|\s+and\b)\s*\(?(?:[A-Za-z]\b|\0)"),
    "": re.compile(r"[.:,)\]–—\n]| [–—\0-]|\s*/|\s+(?:or|and|because|since)\b", re.I),
}
_JOINED = re.compile(r"(?:\b(?:or|and|nor)|[/,&])\s*[\"'(\[]*\Z", re.I)
#: An article in an option, which an `A` is at its beginning alone.
_ARTICLE = re.compile(r"(?:a|(?i:an|the)|\AA)\Z")
_ONLY_OPTIONS = re.compile(r"(?:[\W_]|\b(?:[A-Za-z]|[0-9]+|or|and|both|option)\b|[或和与])*\Z", re.I)


def letters(choices: Sequence[str]) -> tuple[str, ...]:
    """What options are called in prompts and replies: `A` to `Z`; numbers from 1 where there are more than 26."""
    if len(choices) <= len(ascii_uppercase):
        return tuple(ascii_uppercase[: len(choices)])
    return tuple(str(number) for number in range(1, len(choices) + 1))


def shown(choices: Sequence[str]) -> str:
    """Options as prompts show them, one a line: `A. the box`."""
    named = zip(letters(choices), choices, strict=True)
    return "\n".join(f"{letter}. {' '.join(choice.split())}" for letter, choice in named)


def extract(reply: str, choices: Sequence[str]) -> str | None:
    """The one option that a reply gives, as it stands in `choices`.

    None if it gives none, several, or one that is not there; or if it denies one (`not A`).
    """
    given = [choice for choice in choices if choice.strip() == reply.strip()]
    if given:
        return given[0]
    options = _options(tuple(choices))
    meant = _meant(_spoken(reply), options)
    named = {choices[place] for place in meant}
    return named.pop() if len(named) == 1 else None


@dataclass(frozen=True, slots=True)
class _Options:
    """The options of a question: their letters, and patterns of their texts, the longest first."""

    letters: tuple[str, ...]
    texts: tuple[tuple[re.Pattern[str], Meant], ...]

    def mentions(self, text: str, reasons: bool = True) -> list[Meant]:
        """What each mention in a text can mean. With `reasons` false what follows `because` does not count."""
        found: list[tuple[re.Match[str], Meant]] = []
        for pattern, places in self.texts:
            found += [(match, places) for match in pattern.finditer(text)]
            text = _masked(pattern, text)
        found += self._called(text)
        begin = min((match.end() for match, _ in found), default=0)
        reason = None if reasons else _REASON.search(text, begin)
        end = reason.start() if reason else len(text)
        return [_unless_denied(text, match, meant) for match, meant in found if match.start() < end]

    def masked(self, text: str) -> str:
        """A text of the same length in which nothing of an option's text can be read."""
        for pattern, _ in self.texts:
            text = _masked(pattern, text)
        return text

    def only(self, line: str) -> bool:
        """Whether a line holds options and nothing else."""
        return bool(_ONLY_OPTIONS.match(self.masked(line)) and self.mentions(line))

    def _called(self, text: str) -> Iterator[tuple[re.Match[str], Meant]]:
        """The mentions by letter or number in a text without options' texts."""
        numbers = len(self.letters) > len(ascii_uppercase)
        alone = len(re.findall(r"[^\W_]+|\0+", text)) == 1
        for match in (_NUMBER if numbers else _LETTER).finditer(text):
            name = match[1].upper()
            known = name in self.letters
            if alone or _is_label(text, match) or (known and not numbers and _is_letter(text, match)):
                yield match, frozenset([self.letters.index(name)] if known else [])


def _masked(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda match: _MARK * len(match[0]), text)


def _is_label(text: str, match: re.Match[str]) -> bool:
    """Whether a letter or number stands as options do: `(b)`, `b)`, `option b`, `… or b`, or `b.` at the beginning."""
    before, after = text[max(0, match.start() - 20) : match.start()], text[match.end() : match.end() + 20]
    begins = match.start() <= 20 and not before.strip(" \t\n-•(")
    enclosed = before.endswith(("(", "[", '"')) and after.startswith((")", "]", '"', ".", ":"))
    listed = after.startswith(")") and before[-1:] in {"", " ", "\n", "\t"}
    headed = begins and bool(_HEADS.get(match[1].upper(), _HEADS[""]).match(after))
    joined = match[1].isalpha() and match[1] not in "Ii" and bool(_JOINED.search(before) and _NO_ARTICLE.match(after))
    return enclosed or listed or headed or joined or bool(_CALLED.search(before))


def _is_letter(text: str, match: re.Match[str]) -> bool:
    """Whether a lone letter in a sentence means an option: a capital, but not the article and not the pronoun."""
    after = text[match.end() : match.end() + 20]
    return match[1].isupper() and match[1] != "I" and (match[1] != "A" or bool(_NO_ARTICLE.match(after)))


def _unless_denied(text: str, mention: re.Match[str], meant: Meant) -> Meant:
    before, after = text[max(0, mention.start() - 60) : mention.start()], text[mention.end() : mention.end() + 40]
    return frozenset() if _DENIED_BEFORE.search(before) or _DENIED_AFTER.match(after) else meant


@lru_cache(maxsize=256)
def _options(choices: tuple[str, ...]) -> _Options:
    alike: dict[str, set[int]] = {}
    for place, choice in enumerate(choices):
        if text := _pattern(choice):
            alike.setdefault(text, set()).add(place)
    longest_first = sorted(alike, key=len, reverse=True)
    return _Options(letters(choices), tuple((re.compile(text, re.I), frozenset(alike[text])) for text in longest_first))


def _pattern(choice: str) -> str:
    """An option's words with or without articles, and no longer word around them; empty if it has no words."""
    text = normalize("NFKC", choice)
    words = list(re.finditer(r"[^\W_]+", text))
    words = [word for word in words if not _ARTICLE.match(text, *word.span())] or words
    if not words:
        return ""
    # Chinese writes no blanks, so that every character may begin a word.
    begin = "" if _is_chinese(words[0][0][0]) else r"(?<![^\W_])"
    end = "" if _is_chinese(words[-1][0][-1]) else r"(?![^\W_])"
    if text.strip().casefold() == "no":
        end += r"(?! (?:one|longer|other|more)\b)"
    rest = (_gap(text[last.end() : word.start()]) + re.escape(word[0].lower()) for last, word in pairwise(words))
    return begin + re.escape(words[0][0].lower()) + "".join(rest) + end


def _gap(written: str) -> str:
    """What may stand between two words: punctuation only where the option has some, as a comma can join two options."""
    between = r"[ \t_\"'-]+" if re.fullmatch(r"(?:[\s_\"'’-]|\b(?:a|an|the)\b)*", written) else r"[\W_]+"
    return f"{between}(?:(?:the|an?){between})?"


def _is_chinese(character: str) -> bool:
    return "\u2e80" <= character <= "\uffdc"


def _spoken(reply: str) -> str:
    """A reply without its thoughts and its mark-up; JSON, boxes and tags are said as `Answer: …`."""
    *_, text = re.split(r"</(?:think|thinking|thought|reasoning)>", normalize("NFKC", reply), flags=re.I)
    text = _TOKEN.sub("\n", _THOUGHT.split(text)[0])
    text = _TAG.sub(lambda tag: "\n" if tag[1] else "\nAnswer: ", _LATEX.sub(r"\1", _without_json(text)))
    lines = (_BOX.sub(r"\nAnswer: \1 ", line, count=1) for line in text.split("\n"))
    return "\n".join(lines).translate(_MARKUP)


def _without_json(text: str) -> str:
    """A text whose last JSON object, if that has a field `answer`, is said as `Answer: …`."""
    end = text.rfind("}") + 1
    for start in (text.find("{"), text.rfind("{", 0, end)):
        try:
            value = orjson.loads(text[start:end])
        except orjson.JSONDecodeError:
            continue
        fields = {str(name).casefold(): field for name, field in value.items()} if isinstance(value, dict) else {}
        if "answer" in fields:
            answer = fields["answer"]
            said = " or ".join(map(str, answer if isinstance(answer, list) else [answer] if answer is not None else []))
            return f"{text[:start]}\nAnswer: {' '.join(said.split())} {text[end:]}"
    return text


def _meant(text: str, options: _Options) -> Meant:
    """The options that everything named in a reply's answer can mean."""
    masked = options.masked(text)
    # An option may have several paragraphs; what is read below are lines.
    text = "".join(" " if (seen, hidden) == ("\n", _MARK) else seen for seen, hidden in zip(text, masked, strict=True))
    explicit = [match.end() for match in _EXPLICIT.finditer(masked)]
    begin = explicit[-1] if explicit else 0
    stated = [match.end() for match in _STATED.finditer(masked, begin)]
    if not explicit and not stated:
        reasoned = _REASONED.search(masked)
        return _common((reasoned and options.mentions(text[: reasoned.start()])) or options.mentions(text))
    if not explicit:
        return _common(_given(text[stated[-1] :], options))
    meant = _common(_given(text[begin:], options))
    # Who states another answer after the explicit one gives two.
    later = _common(_given(text[stated[-1] :], options)) if stated else frozenset()
    return meant & later if later else meant


def _given(rest: str, options: _Options) -> list[Meant]:
    """The mentions in an answer: in its first line, and in the lines after it that hold nothing but options."""
    first, *others = [line for line in rest.split("\n") if line.strip()] or [""]
    mentions = options.mentions(first, reasons=False)
    for line in others:
        if not options.only(line):
            break
        mentions += options.mentions(line)
    return mentions


def _common(mentions: Sequence[Meant]) -> Meant:
    return frozenset.intersection(*mentions) if mentions else frozenset()
