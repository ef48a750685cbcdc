"""Shares that are the same in every export: decided by a row's own content, and not by a die."""

from __future__ import annotations

import hashlib


def falls_in(share: float, *what: str) -> bool:
    """Whether something belongs to a share in [0, 1] of all things of its kind; always the same answer for it."""
    digest = hashlib.sha256("\0".join(what).encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64
