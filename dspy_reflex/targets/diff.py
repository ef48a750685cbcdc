"""What would change in a text, as a unified diff, and what two hands made of one block."""

from __future__ import annotations

import difflib


def diff(name: str, before: bytes | None, after: bytes | None) -> str:
    """What would change in a file, as a unified diff that `patch` takes.

    It is to be read: bytes that are not UTF-8 show as U+FFFD, and no file shows as an empty one.
    """
    return _unified(f"a/{name}", f"b/{name}", _shown(before), _shown(after))


def three_way(name: str, base: str, theirs: str, ours: str) -> str:
    """What a hand and what we make of the same text, as two unified diffs; empty where a side changes nothing.

    Args:
        name: The file.
        base: The text as it was last written here.
        theirs: As it stands in the file now.
        ours: As it would be written now, if nobody had changed it.
    """
    by_hand = _unified(f"{name} as last written", f"{name} as changed by hand", base, theirs)
    return by_hand + _unified(f"{name} as last written", f"{name} as it would be written", base, ours)


def _unified(old: str, new: str, before: str, after: str) -> str:
    found = difflib.unified_diff(_lines(before), _lines(after), old, new)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in found)


def _shown(content: bytes | None) -> str:
    return (content or b"").decode("utf-8", errors="replace")


def _lines(text: str) -> list[str]:
    """Lines as `patch` counts them: only a line feed ends one."""
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])
