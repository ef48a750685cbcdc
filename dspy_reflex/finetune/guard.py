"""What no training row may hold: failures that eval sets keep for measuring."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

import orjson

from dspy_reflex.errors import DatasetError
from dspy_reflex.untrusted import as_text

HELD_OUT = ("val", "test", "test_hard", "unknown", "controls")
"""Splits that are measured on."""
TRAIN = "train"
WORDS = 13
"""A run of so many words in common is no chance (GPT-3, arXiv 2005.14165, appendix C)."""
_WORD = re.compile(r"\w+")

Seen = Literal["held out", "train", "never"]


class Guard:
    """Knows eval sets by the runs of words in them; the texts themselves are not kept."""

    def __init__(self, folders: Iterable[Path]) -> None:
        """Read the splits of these eval sets.

        Raises:
            DatasetError: There is no split in a folder, or one cannot be read.
        """
        places = [_checked(folder) for folder in folders]
        self._train = set(chain.from_iterable(map(_marks, _texts(places, (TRAIN,)))))
        # What train says as well is a turn of phrase of the set, and no sign of a held-out failure.
        self._held_out = set(chain.from_iterable(map(_marks, _texts(places, HELD_OUT)))) - self._train

    def seen(self, *texts: str) -> Seen:
        """Where a text of these was seen before: in what is kept for measuring, in a train split, or nowhere."""
        marks = set(chain.from_iterable(map(_marks, texts)))
        if not self._held_out.isdisjoint(marks):
            return "held out"
        return "never" if self._train.isdisjoint(marks) else "train"


def text_of(task: str, outcome: str, context: str) -> str:
    """What a failure says, as the guard compares it."""
    return f"{task}\n{outcome}\n{context}"


def _marks(text: str) -> list[int]:
    """Hashes of all runs of so many words; of the whole text if it has fewer."""
    words = _WORD.findall(text.lower())
    starts = range(max(len(words) - WORDS, 0) + 1) if words else ()
    return [hash(tuple(words[start : start + WORDS])) for start in starts]


def _checked(folder: Path) -> Path:
    if not any((folder / f"{split}.jsonl").is_file() for split in (TRAIN, *HELD_OUT)):
        raise DatasetError(f"{folder}: is no eval set, it has none of train, val or test.jsonl; check --eval-set")
    return folder


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
                row = cast("dict[str, Any]", orjson.loads(line))
                yield text_of(*(as_text(row.get(name)) for name in ("task", "actual_outcome", "context")))
                # What labellers wrote would tell a model the answers.
                yield as_text(row.get("expected_outcome"))
                yield as_text(row.get("reference_rule"))
    except (OSError, orjson.JSONDecodeError, AttributeError) as error:
        raise DatasetError(f"{file}: cannot be read as an eval set ({error}); check --eval-set") from error
