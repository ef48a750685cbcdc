"""Triggers, actions, bounds, phrases and likeness, found in a rule by word patterns.

Word patterns, not language understanding: they are documented, the same everywhere, and can be argued with. What bounds
and what commands was widened until it accepted nearly all reference rules of our own data set. Standard library only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import lru_cache

TRIGGER = re.compile(
    r"\b(?:before|when(?:ever)?|if|after|unless|while|once|upon|where(?:ver)?|as soon as|in case|"
    r"(?:each|every|any) time|for (?:any|every|each|all)|on (?:an?|any|every|each|the first))\b",
    re.IGNORECASE,
)
"""Words that say when a rule applies."""

BOUND = re.compile(
    r"\d|\b(?:once|twice|two|three|four|five|at (?:most|least)|no (?:more|less|fewer) than|up to|max(?:imum)?|"
    r"min(?:imum)?|limit(?:ed)?|only|never|exactly|within|until|then|if|otherwise|or else|instead|rather than|without|"
    r"and stop|escalate)\b",
    re.IGNORECASE,
)
"""Words that say how many, how long, or what then (`if` where another word is the trigger)."""

_VERBS = """
abort accept acknowledge add adopt alert answer apply ask assert assume attach avoid back batch begin bound build
cache calculate call cancel carry cast check choose cite clarify clear collect compare compute confirm consult
continue convert copy count cross-check decide declare define delegate derive diff discard do document double-check
draft drop echo end ensure enumerate escalate estimate exclude execute explain express extract fail fall fetch
filter find finish fix flag follow format gather get give guard halt hand handle hold identify ignore include inform
insert inspect interpret keep label leave limit link list load log look maintain make map mark match measure merge
name normalise normalize note notify obtain offer open order parse pass pause persist pick pin place plan post
prefer prepare present preserve prioritise prioritize proceed propose prove provide query quote raise re-check
re-read re-run re-verify read recalculate recheck recompute reconcile record redo refer refresh refuse reject rely
remind remove repeat replace reply report request require reread rerun resend reset resolve restate resume retain
retrieve retry return reuse review revisit round run save say scan schedule search seek select send separate set
show signal skip sort specify split start state stop store strip submit summarise summarize surface switch take tell
test trace track translate treat trim try update use validate verify wait warn watch work write
"""
VERBS = frozenset(_VERBS.split())
"""Verbs that rules for agents begin with; a rule that commands with another one is read by `COMMAND`."""

COMMAND = re.compile(r"\b(?:must|always|never|do not|don't|should|shall)\s+(?:not\s+)?[a-z]{2,}", re.IGNORECASE)
CLAUSE = re.compile(
    r"(?:^|[,;:.!?\u2013\u2014]\s*|\b(?:then|and|always|never|first)\s+)(?:\w+ly\s+)?([A-Za-z-]{2,})", re.IGNORECASE
)
"""The first word of a clause, an adverb before it apart."""

WORD = re.compile(r"\w+")
SENTENCE_END = re.compile(r"[.!?]+(?=\s+[A-Z\"'(]|\s*$)|\n+")
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|approx)\.", re.IGNORECASE)

_STOP_WORDS = "a an and any are as at be before by for from if in is it its of on or that the then to when with"
STOP_WORDS = frozenset(_STOP_WORDS.split())
SUFFIXES = ("ications", "ication", "ations", "ation", "ies", "ied", "ing", "es", "ed", "s", "y", "i", "e")
"""Endings that `stem` takes off, the longest first."""
ENDINGS = (
    *SUFFIXES, "ying", "er", "ers", "ion", "ions", "able", "iable", "ment", "ments", "ly", "al", "ive", "ity", "ance",
    "ence", "ent", "ise", "ize", "ised", "ized", "ising", "izing", "ises", "izes",
)  # fmt: skip
"""Endings that a stem may have. A closed list: `retry` finds `retries` and not `retrieve`."""
MIN_STEM = 3
"""A stem is not made shorter than this."""
MIN_PREFIX = 5
"""A shorter word is no beginning of others: `log` and `logic`."""


def has_action(rule: str) -> bool:
    """Whether a clause of the rule commands something: it begins with a verb of `VERBS`, or says must or never."""
    return bool(COMMAND.search(rule)) or any(_is_verb(found[1].lower()) for found in CLAUSE.finditer(rule))


def _is_verb(word: str) -> bool:
    """Whether it is one of `VERBS`, or that once more: `rebuild`, `re-list`."""
    return word in VERBS or word.removeprefix("re").lstrip("-") in VERBS


def sentences(rule: str) -> int:
    """How many sentences or lines there are."""
    text = ABBREVIATION.sub("", rule)
    return sum(1 for part in SENTENCE_END.split(text) if part.strip())


def mentions(rule: str, phrase: str) -> bool:
    """Whether a rule says a phrase: its words in order, in any inflection, at most two other words between them."""
    pattern = _phrase(phrase.lower())
    return pattern is not None and pattern.search(rule.lower()) is not None


@lru_cache(maxsize=8_192)
def _phrase(phrase: str) -> re.Pattern[str] | None:
    """Compiled once: a benchmark asks for the same few thousand phrases again and again."""
    words = WORD.findall(phrase)
    pattern = r"\W+(?:\w+\W+){0,2}?".join(_inflected(word) for word in words)
    return re.compile(rf"(?<!\w){pattern}") if words else None


def similarity(first: str, second: str) -> float:
    """How alike two rules are, in [0, 1]: the larger of shared content words (Dice) and shared text in order."""
    one, other = _content(first), _content(second)
    dice = 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0
    text = SequenceMatcher(None, " ".join(WORD.findall(first.lower())), " ".join(WORD.findall(second.lower())))
    return max(dice, text.ratio())


def _content(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in WORD.findall(text.lower()) if word not in STOP_WORDS)


def stem(word: str) -> str:
    """A word without its usual endings: `verify`, `verified` and `verification` give the same."""
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= MIN_STEM:
            return word[: -len(suffix)]
    return word


def _inflected(word: str) -> str:
    """A pattern of the word's forms. A long word is also taken as a beginning: `calculat` finds `calculation`."""
    root = stem(word)
    doubled = rf"{re.escape(root[-1])}?"  # as in `logged`
    forms = rf"{re.escape(root)}{doubled}(?:{'|'.join(ENDINGS)})?(?!\w)"
    return rf"(?:{re.escape(word)}\w*|{forms})" if len(word) >= MIN_PREFIX else rf"(?:{re.escape(word)}(?!\w)|{forms})"


def any_similar(rule: str, others: Iterable[str], threshold: float) -> str | None:
    """The first of other rules that is as similar as `threshold`."""
    return next((other for other in others if similarity(rule, other) >= threshold), None)
