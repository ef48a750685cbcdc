"""What the offline learner notices in a text: words, word pairs, where they stand, and a few observations.

Nothing here knows a label. Observations are plain English descriptions of what a text shows (an error came back, a
figure that stands nowhere before); they can be written into an instruction as they are, and read back from it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

WORD = re.compile(r"[^\W\d_][^\W_]*|(?<!\d)[0-3](?!\d)|(?<!\d)[45]\d\d(?!\d)")
TAIL_CHARS = 700
"""The end of a field is noted apart: what happened last says more than what happened first."""
SCOPED_FIELDS = 3
"""How many of the last input fields have their end noted apart (the first ones say what was asked)."""

Features = Counter[str]
"""Feature name to how often it was seen. Names: a word, two words, `field:word`, or `<observation>`."""

OBSERVATIONS: dict[str, str] = {
    "an error came back": "error, errors, exception, failed, failure, fails, traceback, fatal, panic, crashed",
    "something timed out": "timeout, timeouts, timed out, deadline exceeded, etimedout, hung, no response, unreachable",
    "access was refused": "denied, forbidden, unauthorized, 401, 403, not allowed, not permitted, permission",
    "a service was overloaded or down": "429, 502, 503, 504, 500, 529, throttled, unavailable, overloaded, outage, "
    "maintenance, degraded, bad gateway, is down, rate limit, service unavailable, incident",
    "a call was tried again": "retry, retries, retried, retrying, attempt, attempts, try again, backoff, again after",
    "something was not found": "404, not found, missing, nonexistent, no such, inaccessible, not exist",
    "nothing or too little came back": "empty, null, none, nothing, blank, truncated, partial, 0 rows, 0 results, "
    "0 hits, no results, no output, cut off",
    "old data came back": "stale, cached, outdated, yesterday, last updated, lagging, snapshot, not refreshed, as of",
    "a guess": "probably, likely, perhaps, maybe, might, seems, appears, presumably, approximately, roughly, guess, "
    "estimate, estimated, assume, assuming, assumed, assumption, suppose, supposed, should be, i think, close enough, "
    "going with, looks like, looks right, looks fine, good enough, must be, sounds like, best guess",
    "a stand-in was used": "placeholder, mock, dummy, simulated, simulate, hypothetical, pretend, tbd, todo, "
    "path to, your api, sample data",
    "certainty": "definitely, certainly, confirmed, verified, confident, clearly, obviously, surely, indeed, no doubt",
    "claims to be done": "done, completed, complete, success, successful, successfully, finished, terminate, solved, "
    "all set, sent, fixed, merged, published, booked, submitted, delivered, good news",
    "no check was made": "skip, skipped, skipping, unchecked, untested, without checking, not run, no need, "
    "not check, not checked, not verified, without asking, dry run, not opened",
    "from general knowledge": "usually, typically, normally, standard, commonly, by default, as usual, from memory, "
    "well known, known fact, convention, i know, generally, always been",
    "something was noted or agreed earlier": "noted, earlier, previous, previously, already, remember, history, "
    "still, prior, originally, first message, will keep, keep in, got it, understood, as agreed, as mentioned, "
    "you said, told you, i said, as before, from now, once more, turn 1, turn 2",
    "memory was shortened": "summary, summarized, summarised, compacted, compaction, trimmed, handoff, handover, "
    "hand over, memory, window, session, context window, carried over, older turns, condensed, overwritten",
    "two readings are open": "clarify, specify, unclear, either, whether, which one, which of, both rules, conflict, "
    "precedence, meant, i meant, we meant, wanted, not what, not specified, not say, "
    "rule 1, rule 2, rule 3, changed my, actually make, instead of, unspecified, not defined, two of",
    "an instruction": "instruction, instructions, must, policy, rule, rules, guideline, required, constraint, never, "
    "always, only, system prompt, requirement, may not, do not",
    "calculation": "total, sum, average, percent, count, difference, calculate, calculated, computed, minus, plus, "
    "times, divided, multiplied, subtract, net, equals, median, rounded",
    "a conclusion is drawn": "so, therefore, thus, hence, means, which means, consequently, because, implies, "
    "it follows, then the, compare, compared, larger, smaller, earliest, latest, highest, lowest, cheapest, between",
    "an unknown or retired interface": "deprecated, removed, renamed, unknown, unexpected, unsupported, invalid, "
    "unrecognized, unrecognised, not supported, no attribute, no longer, keyword argument, syntax error, "
    "not valid, expects, expected format, retired, legacy, ignored",
    "a convention of units or formats": "unit, units, format, cents, decimal, locale, utc, timezone, time zone, gmt, "
    "encoding, iso, metric, notation, inclusive, exclusive, calendar, holiday, business days, working days, fiscal",
    "an action on real things": "delete, deleted, deleting, drop, paid, pay, transfer, refund, refunded, cancel, "
    "cancelled, overwrite, force, push, deploy, deployed, purge, revoke, revoked, disable, disabled",
}
"""What a text can show, and the words and pairs of words that show it."""
SHOWN_BY: dict[str, str] = {word: shown for shown, words in OBSERVATIONS.items() for word in words.split(", ")}

_DIGITS = re.compile(r"\d[\d.,:/-]*\d|\d")


def words_of(text: str) -> list[str]:
    """Lower-case words and numbers of up to three digits, in order."""
    return WORD.findall(text.lower())


def features_of(fields: Mapping[str, str]) -> Features:
    """Everything noticed in the input fields of one example."""
    found: Features = Counter()
    late = list(fields)[-SCOPED_FIELDS:]
    for name, text in fields.items():
        words = words_of(text)
        found.update(words)
        found.update(map(" ".join, pairwise(words)))
        if name in late:
            tail = words if len(text) <= TAIL_CHARS else words_of(text[-TAIL_CHARS:])
            found.update(f"{name}:{word}" for word in tail)
    found.update(_observations(fields, found))
    return found


def observed(word: str) -> str:
    """What a word shows, in words; empty if nothing in particular."""
    return SHOWN_BY.get(word, "")


def _observations(fields: Mapping[str, str], found: Features) -> Features:
    notes: Features = Counter()
    for word in sorted(SHOWN_BY.keys() & found.keys()):
        notes[f"<{SHOWN_BY[word]}>"] += found[word]
    for name, text in list(fields.items())[-2:]:
        words = words_of(text[-TAIL_CHARS:])
        for word in sorted(SHOWN_BY.keys() & {*words, *map(" ".join, pairwise(words))}):
            notes[f"<{name} ends on {SHOWN_BY[word]}>"] += 1
    notes.update(_structure(fields))
    return notes


def _structure(fields: Mapping[str, str]) -> list[str]:
    texts = list(fields.values())
    notes: list[str] = []
    if len(texts) > 1:
        known = set(_DIGITS.findall(" ".join([*texts[:-2], texts[-1]])))
        if set(_DIGITS.findall(texts[-2])) - known:
            notes.append("<a figure that stands nowhere else>")
    lines = [line for line in map(str.strip, texts[-1].splitlines()) if len(line) > 20] if texts else []
    if len(set(lines)) < len(lines):
        notes.append("<a line is repeated>")
    return notes
