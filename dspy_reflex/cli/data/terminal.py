"""What labelling and adjudicating share: a failure on the screen, keys for its labels, and the file. All of it on stderr."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from dspy_reflex.cli.keys import say
from dspy_reflex.errors import ConfigError, DatasetError
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.untrusted import neutralise

if TYPE_CHECKING:
    from dspy_reflex.records.taxonomy import Taxonomy

NOTHING_KEY = "0"
BACK_KEY = "b"


class Move(Enum):
    """An answer that is no answer to the question."""

    BACK = "back"
    SKIP = "skip"
    QUIT = "quit"


def read_labelled(path: Path, taxonomy: Taxonomy) -> dict[str, LabelledFailure]:
    """The rows of one labelled file by id; none if it is not there yet or empty.

    Raises:
        DatasetError: It is a folder, cannot be used, or has two rows that nothing tells apart.
    """
    from dspy_reflex.evalset.load import load_evalset

    if path.is_dir():
        raise DatasetError(f"{path}: a folder; give one JSON Lines file")
    if not path.exists() or not path.stat().st_size:
        return {}
    rows = [row for split in load_evalset(path, taxonomy).splits.values() for row in split]
    return by_id(rows)


def by_id(rows: Iterable[LabelledFailure]) -> dict[str, LabelledFailure]:
    """Rows by id, or by text where the file gave none.

    Raises:
        DatasetError: Two rows have the same text and no id.
    """
    found: dict[str, LabelledFailure] = {}
    for row in rows:
        if row.id in found:
            raise DatasetError(f"{row.where or row.id}: the same text as another row, and no id; give each row an `id`")
        found[row.id] = row
    return found


def show(row: LabelledFailure, heading: str) -> None:
    """A failure as a program would see it, and nothing of what anybody said about it."""
    say(f"\n{heading}  {neutralise(row.id)}")
    for name, text in row.inputs.items():
        say(f"{name}\n" + "\n".join(f"  {line}" for line in text.splitlines()))


def label_keys(taxonomy: Taxonomy) -> dict[str, str]:
    """Key to label: digits, then letters that mean nothing else."""
    keys = list("123456789acdefghijklmoprtuvwxyz")[: len(taxonomy.labels)]
    if len(keys) < len(taxonomy.labels):
        raise ConfigError(f"{taxonomy.name} has {len(taxonomy.labels)} labels; keys go up to {len(keys)}")
    return dict(zip(keys, taxonomy.labels, strict=True))


def write_rows(path: Path, rows: Mapping[str, LabelledFailure]) -> None:
    """Replace the labelled file as a whole, so that a key pressed is never lost and never half written."""
    from dspy_reflex.evalset.writing import to_lines, to_object
    from dspy_reflex.files import write_atomic

    write_atomic(path, to_lines(map(to_object, rows.values())))
