"""Masked text of a failure's outcome: equal for repeats of one failure, so that they can be counted and grouped.

What differs from repeat to repeat (numbers, ids, times, hosts, paths, quoted values) becomes a placeholder; the words
stay. Every run of the mask sees lower-cased text on one line, and runs until nothing changes any more: that is why the
signature of a signature is itself. Nothing here depends on the process, such as `hash()` would.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dspy_reflex.mechanism.literals import has, literals_of

MAX_CHARS = 200
"""Longest signature; a longer one is cut after a whole word."""
MAX_INPUT_CHARS = 20_000
"""What is read of a text, once stack frames are out: more cannot matter to the first `MAX_CHARS` of the result."""
MAX_ROUNDS = 8
"""Bound on repeated masking; two rounds are usual."""

_Mask = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]

# Frames say where, the error after them says what; with the frames in, every traceback would start alike.
_PYTHON_FRAMES = re.compile(r"^Traceback \(most recent call last\):[ \t]*\n(?:[ \t]+[^\n]*(?:\n|\Z))+", re.MULTILINE)
_OTHER_FRAMES = re.compile(r"\n[ \t]+at [^\n]*")

_NAME = r"[a-z0-9_-]"
_MONTH = (
    r"\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b"
)
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:[ap]m\b|z\b|utc\b|[+-]\d\d:?\d\d\b))?"
_FILE_TYPE = (
    "(?:py|ipynb|js|ts|tsx|java|go|rs|rb|c|cc|cpp|h|cs|php|sh|sql|json|jsonl|jsonld|ya?ml|toml|ini|cfg|env|lock|csv|tsv"
    "|xlsx?|docx?|pptx?|pdf|txt|md|rst|html?|xml|log|db|sqlite3?|parquet|zip|tar|gz|png|jpe?g|gif|svg|mp[34]|wav|bak|tmp)"
)
_TOP_DOMAIN = (
    "(?:com|org|net|io|dev|ai|app|co|cloud|edu|gov|info|eu|uk|de|fr|nl|ch|us|internal|intranet|local|localdomain|lan"
    "|corp|svc|test|example|invalid)"
)
_HOST_WORD = "(?:host|hostname|node|pod|broker|replica|shard)"


def _quoted(found: re.Match[str]) -> str:
    """A quoted value masked; a JSON key as it is, because keys name what went wrong."""
    return found[0] if found[1] else "<str>"


def _mixed(found: re.Match[str]) -> str:
    """A word masked if letters and digits alternate in it as they do in keys and hashes; `python3` and `60s` stay."""
    word = found[0]
    is_hex = _HEX.fullmatch(word) is not None and _LETTER.search(word) and _DIGIT.search(word)
    alternates = _LETTER_DIGIT.search(word) and _DIGIT_LETTER.search(word)
    return "<id>" if is_hex or alternates or len(word) > 40 else word


_HEX = re.compile(r"[0-9a-f]+")
_LETTER = re.compile(r"[a-z]")
_DIGIT = re.compile(r"[0-9]")
_LETTER_DIGIT = re.compile(r"[a-z][0-9]")
_DIGIT_LETTER = re.compile(r"[0-9][a-z]")

_URL: _Mask = (re.compile(r"(?<![a-z0-9])[a-z][a-z0-9+.-]{1,15}://[^\s\"'<>)\]}]+"), "<url>")
_EMAIL: _Mask = (re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*"), "<email>")
_UUID: _Mask = (re.compile(r"(?<![a-z0-9])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![a-z0-9])"), "<id>")
_MONTH_DAY: _Mask = (re.compile(rf"{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?\b(?:,? \d{{4}}\b)?"), "<time>")
_DAY_MONTH: _Mask = (re.compile(rf"(?<!\d)\d{{1,2}}(?:st|nd|rd|th)?\.? {_MONTH}(?:,? \d{{4}}\b)?"), "<time>")
_WEEKDAY: _Mask = (re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"), "<time>")
_WINDOWS_PATH: _Mask = (re.compile(r"(?<![\w\\])[a-z]:\\[^\s\"'<>|]+"), "<path>")
_PATH: _Mask = (re.compile(r"(?<![\w<>/.~])(?:~|\.{1,2})?(?:/[\w.@%+-]+)+/?"), "<path>")
_HEX_NUMBER: _Mask = (re.compile(r"(?<![a-z0-9])0x[0-9a-f]+(?![a-z0-9])"), "<id>")
_KEY: _Mask = (re.compile(r"(?<![a-z0-9])[a-z0-9]{7,}(?![a-z0-9])"), _mixed)
# In this order: each may rely on what those before it took out. Runs start behind a look-behind and gaps are bounded,
# so none reads a megabyte more than a few times.
_QUOTED: tuple[_Mask, ...] = (
    (re.compile(r'"[^"]*"( ?:)?'), _quoted),
    (re.compile(r"(?<!\w)'[^']{0,300}'(?!\w)( ?:)?"), _quoted),
    (re.compile("[`\u201c][^`\u201c\u201d]{1,300}[`\u201d]"), "<str>"),
)
_NAMED: tuple[_Mask, ...] = (
    _URL,
    _EMAIL,
    _UUID,
    (re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?(?![\d.]*\d)"), "<host>"),
    (re.compile(rf"(?<!\d)\d{{4}}-\d\d-\d\d(?:(?:t| ){_CLOCK})?(?!\d)"), "<time>"),
    (re.compile(r"(?<![\d/])\d{1,2}([/.])\d{1,2}\1(?:\d{4}|\d\d)(?![\d/.])"), "<time>"),
    _MONTH_DAY,
    _DAY_MONTH,
    (re.compile(rf"(?<![\d:.]){_CLOCK}(?![\d:])"), "<time>"),
    _WEEKDAY,
    (re.compile(r"(?<![\w:])(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{1,4}(?![\w:])"), "<host>"),
    _WINDOWS_PATH,
    _PATH,
    (re.compile(rf"(?<![\w./-])[\w.-]+(?:/[\w.-]+)*[\w-]\.{_FILE_TYPE}(?![\w.-]*\w)"), "<path>"),
    (re.compile(r"(?<![\w./-])[\w.-]+(?:/[\w.-]+){2,}/?"), "<path>"),
    (re.compile(rf"(?<![\w.-])(?:[a-z0-9_-]{{1,63}}\.){{1,10}}{_TOP_DOMAIN}(?::\d{{1,5}})?(?![\w-])"), "<host>"),
    (re.compile(r"\blocalhost(?::\d{1,5})?\b"), "<host>"),
    # A single letter or a port at the end makes a hyphenated word a machine's name: db-a, eu-web-b:8080.
    (
        re.compile(rf"(?<!{_NAME})[a-z0-9]{{2,30}}(?:-[a-z0-9]{{1,30}}){{0,5}}-[a-z](?::\d{{1,5}})?(?!{_NAME})"),
        "<host>",
    ),
    (re.compile(rf"(?<!{_NAME})[a-z0-9]{{2,30}}(?:-[a-z0-9]{{1,30}}){{1,5}}:\d{{2,5}}(?!{_NAME})"), "<host>"),
    (
        re.compile(rf"\b({_HOST_WORD})([ =:]{{1,2}})[a-z0-9]{{1,30}}(?:-[a-z0-9]{{1,30}}){{1,6}}(?!{_NAME})"),
        r"\1\2<host>",
    ),
    (
        re.compile(r"(?<![a-z0-9])(?:sk|pk|rk|ghp|gho|ghs|xox[abp]|akia|asia|eyj)[a-z0-9_-]{12,}(?:\.[a-z0-9_-]+)*"),
        "<id>",
    ),
    _HEX_NUMBER,
    _KEY,
)
_NUMBER = re.compile(r"(?:(?<=\s)[+-])?\d+(?:[.,]\d+)*(?:e[+-]?\d+)?")
# Three ids or two, it is the same failure.
_LISTED: _Mask = (re.compile(r"(<[a-z]{2,5}>)(?:(?:[,;] ?(?:and )?| and )\1)+"), r"\1")
_MASKS: tuple[_Mask, ...] = (*_QUOTED, *_NAMED, (_NUMBER, "<num>"), _LISTED)
_TELLING = re.compile(r"0|40\d|41[037]|42[2-9]|451|50[0-4]")
"""Numbers that are words: nothing, and what a server answers."""
# With its digits masked, a time, a host or a version looks like any other of its kind: most masks are not needed here.
_REPEATED: tuple[_Mask, ...] = (
    *(_URL, _EMAIL, _UUID, _MONTH_DAY, _DAY_MONTH, _WEEKDAY, _WINDOWS_PATH, _PATH, _HEX_NUMBER, _KEY),
    (_NUMBER, lambda found: found[0] if _TELLING.fullmatch(found[0]) else "<num>"),
    _LISTED,
)
_LITERALS = {pattern: literals_of(pattern) for pattern, _ in _MASKS}


def signature_of(text: str) -> str:
    """Mask what differs from repeat to repeat.

    Returns:
        Lower-case text on one line, at most `MAX_CHARS` long, with placeholders `<num>`, `<id>`, `<time>`, `<host>`,
        `<url>`, `<email>`, `<path>` and `<str>`. Empty for text without a word.
    """
    text = _OTHER_FRAMES.sub("", _PYTHON_FRAMES.sub("", text.replace("\r\n", "\n")))
    text = " ".join(text[:MAX_INPUT_CHARS].lower().split())
    for _ in range(MAX_ROUNDS):
        masked = _shorten(_masked(text), MAX_CHARS)
        if masked == text:
            break
        text = masked
    return text


def repeat_of(text: str) -> str:
    """What two texts have in common if one may repeat the other: all but numbers, ids, days, addresses and paths.

    More is kept than in a signature: the whole length, what stands in quotes, as everything does in a trace, zeros, and
    numbers that may be a server's answer. Where this is equal, nobody could give the failures different causes.
    """
    return _masked(" ".join(text.lower().split()), _REPEATED)


def _masked(text: str, masks: tuple[_Mask, ...] = _MASKS) -> str:
    for pattern, replacement in masks:
        if has(text, _LITERALS[pattern]):
            text = pattern.sub(replacement, text)
    return " ".join(text.split())


def _shorten(text: str, limit: int) -> str:
    """The text, cut after a whole word: half a word could look like something to mask."""
    if len(text) <= limit:
        return text
    cut = text[: limit + 1].rpartition(" ")[0]
    return cut or text[:limit]
