"""What a failure's text goes through before it is prompted: turn it into text, neutralise it, clip it.

A failure is written by agents, tools and web pages, so it may hold text that a prompt's reader would take for the
prompt's own structure. Plain strings in and out; nothing here judges or interprets what the text says, and nothing is
redacted. Every function is linear in its input.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, time
from typing import Any, cast

MIN_QUOTE_CHARS = 3
"""A shorter quote occurs almost anywhere and is evidence of nothing."""
_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_PLAIN = frozenset({str, float, bool, type(None)})
"""Types whose values are as they should be: most of what there is, and asked for first."""
MAX_DEPTH = 40
"""Nesting below this is left out: nobody reads it, and it could exhaust the interpreter's stack."""
MAX_BITS = 10_000
"""Of an integer that is told as it is: writing a longer one takes Python too long."""
HEAD_SHARE = 0.4
"""Share of a clipped text that its beginning gets; the end, which decides how a trace came out, gets the rest."""

# Line ends first, so that every later step sees one kind. U+0085, U+2028 and U+2029 end a line for `str.splitlines`,
# by which DSPy parses, and for nobody else.
_LINE_END = re.compile("\r\n?|[\u0085\u2028\u2029]")
# C0 without tab and line feed, DEL, C1 and lone surrogates: shown, because their presence says something.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
# General category Cf (bidi, tags, zero width, soft hyphen) but for the two joiners, and what else renders as nothing:
# combining grapheme joiner, Hangul and Khmer fillers, Mongolian and supplementary variation selectors. All of them can
# hide text from a person that a model reads. U+FE0E and U+FE0F stay: they choose between text and emoji.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b"
    "\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Zero-width joiner and non-joiner spell Persian, Indic words and emoji families, so they stay between two characters
# that are not ASCII; next to ASCII, or its full-width twins below, they could only split a word or a marker.
_NOT_JOINED = "\x00-\x7f\u200c\u200d\uff03\uff3b\uff3d"
_STRAY_JOINER = re.compile(f"(?<![^{_NOT_JOINED}])[\u200c\u200d]|[\u200c\u200d](?![^{_NOT_JOINED}])")
# Either half of a chat field header, `[[ ## name ## ]]`, however spaced, also in full-width forms. Each alternative
# takes a whole run and cannot fail after its first character: no backtracking on a megabyte of brackets.
_BLANK = " \t\u00a0\u3000"
_HEADER_HALF = re.compile(
    f"[\\[\uff3b][\\[\uff3b{_BLANK}]*[#\uff03{_BLANK}]*|[#\uff03][#\uff03{_BLANK}]*[\\]\uff3d{_BLANK}]*"
)
_CUSTOM_TYPE = re.compile("CUSTOM-TYPE-(START|END)-IDENTIFIER", re.IGNORECASE)
# Most texts: ASCII without control characters, `[` and `#`. With no custom type in it, nothing above matches such a text.
_HARMLESS = re.compile(r'[\t\n -"$-Z\\-~]*')
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def neutralise(text: str) -> str:
    r"""Take from a text what DSPy, a model or a reader could mistake for something other than text.

    Chat field headers lose one bracket and one hash on either side (`[[ ## name ## ]]` becomes `[# name #]`), custom
    type markers lose their dashes, control characters become visible (NUL as U+2400), characters without a shape are
    removed, and line ends become `\n`. Idempotent, never longer than the input, all else untouched.
    """
    if _HARMLESS.fullmatch(text) and "custom-type-" not in text.lower():
        return text
    text = _LINE_END.sub("\n", text)
    text = _CONTROL.sub(_visible, text)
    # Before the markers, which an invisible character inside would hide from us.
    text = _STRAY_JOINER.sub("", _INVISIBLE.sub("", text))
    text = _HEADER_HALF.sub(_single, text)
    return _CUSTOM_TYPE.sub(lambda found: found[0].replace("-", "_"), text)


def _visible(found: re.Match[str]) -> str:
    """A control character's picture; U+FFFD where Unicode has none."""
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def _single(found: re.Match[str]) -> str:
    """Half a field header with one bracket and one hash; other runs as they are."""
    run = found[0]
    opens, closes = run.count("[") + run.count("\uff3b"), run.count("]") + run.count("\uff3d")
    if run.count("#") + run.count("\uff03") < 2 or max(opens, closes) < 2:
        return run
    blank = run[len(run.rstrip(_BLANK)) :]
    return ("[#" if opens else "#]") + blank


def clip(text: str, limit: int) -> str:
    """Keep the head and the tail of a text, with a mark that says how much is missing between them.

    Args:
        text: Any text.
        limit: Most characters that the result may have; where not even the mark fits, only the text's end is kept.

    Returns:
        The text itself if it is short enough.
    """
    if len(text) <= limit:
        return text
    room = limit - len(_mark(len(text)))
    if room < 2:
        return text[len(text) - limit :] if limit > 0 else ""
    head = int(room * HEAD_SHARE)
    tail = room - head
    return text[:head] + _mark(len(text) - room) + text[len(text) - tail :]


CLIPPED = re.compile("\n\u2026\\[\\d+ characters left out\\]\u2026\n")
"""The mark that `clip` leaves."""


def _mark(left_out: int) -> str:
    return f"\n\u2026[{left_out} characters left out]\u2026\n"


def as_text(value: object) -> str:
    """Turn whatever a logger had into stable, readable text; never raises.

    A string stays as it is and None is empty. A mapping becomes `key: value` blocks, in which text of several lines
    and lists of texts or mappings start on their own line; such a list has one item per line. What is nested deeper is
    compact JSON. The same value gives the same text in every process: sets are sorted, memory addresses left out.
    """
    if type(value) is str:
        return value
    try:
        return _block(plain(value))
    except Exception:  # noqa: BLE001 - an object's own code ran: whatever it raised, the failure must still be told
        return _unreadable(value)


def plain(value: object) -> Any:
    """The same value made of None, booleans, numbers, strings, lists and mappings of strings; never raises.

    What is none of these becomes text, a cycle and what is nested deeper than `MAX_DEPTH` a note.
    """
    return _plain(value, ())


def quoted_in(quote: str, text: str) -> bool:
    """Whether a quote occurs word for word in a text, white space apart.

    Quotes shorter than `MIN_QUOTE_CHARS` never count.
    """
    wanted = " ".join(quote.split())
    return len(wanted) >= MIN_QUOTE_CHARS and wanted in " ".join(text.split())


def _block(value: object) -> str:
    """The outermost level, laid out for reading."""
    if isinstance(value, dict):
        return "\n".join(_entry(key, item) for key, item in cast("dict[str, object]", value).items())
    if _is_listing(value):
        return "\n".join(_line(item) for item in cast("list[object]", value))
    return "" if value is None else _line(value)


def _entry(key: str, value: object) -> str:
    text = _block(value) if _is_listing(value) else _line(value)
    return f"{key}:\n{text}" if "\n" in text or _is_listing(value) else f"{key}: {text}".rstrip()


def _line(value: object) -> str:
    return value if isinstance(value, str) else _COMPACT.encode(value)


def _is_listing(value: object) -> bool:
    """A list worth a line per item: not of numbers or of lists."""
    return isinstance(value, list) and any(isinstance(item, str | dict) for item in cast("list[object]", value))


def _plain(value: object, above: tuple[int, ...]) -> Any:
    """The value as JSON types; `above` holds the identities of the containers around it."""
    if type(value) in _PLAIN or (type(value) is int and value.bit_length() < MAX_BITS):
        return value
    try:
        return _plain_container(value, above) if _is_container(value) else _plain_scalar(value)
    except Exception:  # noqa: BLE001 - as in `as_text`: one odd member must not cost its neighbours
        return _unreadable(value)


def _plain_container(value: object, above: tuple[int, ...]) -> Any:
    if id(value) in above:
        return "<cycle>"
    if len(above) >= MAX_DEPTH:
        return "<nested too deeply>"
    above = (*above, id(value))
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value).items()
        return {str(_plain_scalar(key)): _plain(item, above) for key, item in entries}
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name), above) for field in dataclasses.fields(value)}
    items = [_plain(item, above) for item in cast("Sequence[object]", value)]
    # A set has no order of its own, and with it the text would differ from process to process.
    return sorted(items, key=_line) if isinstance(value, AbstractSet) else items


def _plain_scalar(value: object) -> Any:
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if value.bit_length() < MAX_BITS else f"<integer of {value.bit_length()} bits>"
    if isinstance(value, str):
        return str.__str__(value)  # not str(): an enumeration member would show its class
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(cast("bytes", value)).decode("utf-8", errors="replace")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {value}".rstrip(": ")
    return _ADDRESS.sub("", str(value))


def _is_container(value: object) -> bool:
    if isinstance(value, Mapping | list | tuple | AbstractSet):
        return True
    return dataclasses.is_dataclass(value) and not isinstance(value, type)


def _unreadable(value: object) -> str:
    return f"<unreadable {type(value).__name__}>"
