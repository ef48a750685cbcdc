"""What no training row may hold: failures that eval sets keep for measuring."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, cast

import orjson

from dspy_reflex.errors import DatasetError
from dspy_reflex.untrusted import as_text

HELD_OUT = ("val", "test", "test_hard", "unknown", "controls")
"""Splits that are measured on."""
TRAIN = "train"
WORDS = 13
"""A run of so many words in common is no chance (GPT-3, arXiv 2005.14165, appendix C)."""
_WORD = re.compile(r"\w+")


class Guard:
    """Knows eval sets by the runs of words in them; the texts themselves are not kept."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """Read the splits of these eval sets.

        Raises:
            DatasetError: A file cannot be read.
        """
        places = list(folders)
        self._train = set(chain.from_iterable(map(_marks, _texts(places, (TRAIN,)))))
        # What train says as well is a turn of phrase of the set, and no sign of a held-out failure.
        self._held_out = set(chain.from_iterable(map(_marks, _texts(places, HELD_OUT)))) - self._train

    def is_held_out(self, text: str) -> bool:
        """Whether a text repeats a failure that is kept for measuring."""
        return not self._held_out.isdisjoint(_marks(text))

    def is_known(self, text: str) -> bool:
        """Whether a text repeats a failure of a train split, which may be trained on and is said."""
        return not self._train.isdisjoint(_marks(text))


def text_of(failure: dict[str, Any]) -> str:
    """What a failure says, as the guard compares it."""
    return "\n".join(as_text(failure.get(name)) for name in ("task", "actual_outcome", "context"))


def _marks(text: str) -> Iterator[int]:
    """Hashes of all runs of so many words; of the whole text if it has fewer."""
    words = _WORD.findall(text.lower())
    if not words:
        return iter(())
    runs = (tuple(words[start : start + WORDS]) for start in range(max(1, len(words) - WORDS + 1)))
    return map(hash, runs)


def _texts(folders: Iterable[Path], splits: Iterable[str]) -> Iterator[str]:
    for folder in folders:
        for split in splits:
            yield from _lines(folder / f"{split}.jsonl")


def _lines(file: Path) -> Iterator[str]:
    if not file.exists():
        return
    try:
        with file.open("rb") as lines:
            for line in lines:
                yield text_of(cast("dict[str, Any]", orjson.loads(line)))
    except (OSError, orjson.JSONDecodeError, AttributeError) as error:
        raise DatasetError(f"{file}: cannot be read as an eval set ({error}); check --eval-set") from error
