"""What a Markdown parser says about a rule file: the list items in it, and comments that stand on lines of their own.

A heading or marker inside a code fence, an HTML block, a quote or a list is none, which only a parser can tell. Text is
cut into lines as CommonMark does it: after a line feed, a carriage return, or both.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token

from dspy_reflex.errors import TargetError

BOM = "\ufeff"
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_LABEL = re.compile(r"^\[[^\]]*\]\s+(?:_\d{4}-\d\d-\d\d_:\s+)?")
_WIDE = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x00\x00\xfe\xff": "UTF-32"}


def decode(content: bytes, name: str) -> str:
    """A rule file as text that `encode` turns back into the same bytes, whatever they are.

    Bytes that are not UTF-8 become lone surrogates, as Python does with file names.

    Raises:
        TargetError: It is UTF-16, UTF-32 or no text at all, so that rules in UTF-8 could not be read in it.
    """
    for mark, encoding in _WIDE.items():
        if content.startswith(mark):
            raise TargetError(f"{name} is {encoding}, not UTF-8; save it as UTF-8 first")
    if b"\x00" in content:
        raise TargetError(f"{name} holds NUL bytes, so it is no text in UTF-8; save it as UTF-8 first")
    return content.decode("utf-8", errors="surrogateescape")


def encode(text: str) -> bytes:
    """The bytes that `decode` was given."""
    return text.encode("utf-8", errors="surrogateescape")


def lines(text: str) -> list[str]:
    """Lines with their ends, numbered as the parser numbers them."""
    return _LINE.findall(text)


def comments(text: str) -> list[tuple[int, str]]:
    """Index of the line and text of each one-line HTML block at the top level of a document."""
    return [
        (token.map[0], token.content.strip())
        for token in _tokens(text)
        if token.type == "html_block" and token.level == 0 and token.map and token.map[1] == token.map[0] + 1
    ]


def last_start(text: str) -> int:
    """Index of the line on which the last thing at the top level starts; 0 if there is none."""
    return max((token.map[0] for token in _tokens(text) if token.level == 0 and token.map), default=0)


def rules_in(text: str) -> list[str]:
    """The list items of a rule file, ours and others', each on one line, without our id and date."""
    tokens = _tokens(text)
    firsts = (words for item, words in zip(tokens, tokens[2:], strict=False) if item.type == "list_item_open")
    said = (" ".join(words.content.split()) for words in firsts if words.type == "inline")
    return [rule for words in said if (rule := _LABEL.sub("", words, count=1))]


@lru_cache(maxsize=4)
def _tokens(text: str) -> tuple[Token, ...]:
    """What the parser finds. An edit looks at the same two texts, old and new, six times."""
    return tuple(_parser().parse(text.removeprefix(BOM)))


@cache
def _parser() -> MarkdownIt:
    """A parser of block structure alone: what stands inside a line is nobody's business here."""
    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser
