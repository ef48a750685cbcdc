"""Which rows a compile learns from, and which it chooses on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from dspy_reflex.errors import CompileError, DatasetError
from dspy_reflex.evalset.labelled import EvalSet, LabelledFailure
from dspy_reflex.evalset.load import SINGLE_SPLIT
from dspy_reflex.evalset.split import split_rows

VAL_SHARE = 0.2
"""Share of a single file's rows that programs are chosen on; the others are what they learn from."""
FEW_ROWS = 40
"""Below this a val split decides nothing: every row is learnt from, and the score is cross-validated."""
KEPT_APART = ("test", "test_hard")
"""Splits of a folder that nothing may learn from, nor from a row that shares a unit with one of theirs."""

Rows = Sequence[LabelledFailure]


def train_and_val(sets: Sequence[EvalSet], seed: int) -> tuple[Rows, Rows]:
    """Rows to learn from and rows to choose on: folders' own splits; those of all files together are made here.

    A unit that is on one side already keeps its rows together there; one of a folder's test split is not used at all.

    Raises:
        DatasetError: A folder has no train split.
        CompileError: There is nothing to tell apart.
    """
    for one in sets:
        if not {"train", SINGLE_SPLIT} & one.splits.keys():
            raise DatasetError(f"{one.name}: a folder to compile on needs train.jsonl; it has {', '.join(one.splits)}")
    train = [row for one in sets if "train" in one.splits for row in one.split("train")]
    val = [row for one in sets if "train" in one.splits for row in one.splits.get("val", ())]
    kept_apart = {row.unit for one in sets for name, rows in one.splits.items() if name in KEPT_APART for row in rows}
    loose = [row for one in sets if "train" not in one.splits for row in one.rows if row.unit not in kept_apart]
    to_choose_on = {row.unit for row in val}
    free = [row for row in loose if row.unit not in to_choose_on]
    val += [row for row in loose if row.unit in to_choose_on]
    to_learn_from = {row.unit for row in train}
    undecided = [row for row in free if row.unit not in to_learn_from]
    train += [row for row in free if row.unit in to_learn_from]
    if len(undecided) < FEW_ROWS:
        return _told_apart([*train, *undecided]), val
    learn, choose = split_rows(undecided, val_share=VAL_SHARE, seed=seed)
    return _told_apart([*train, *learn]), [*val, *choose]


def digest(train: Rows, val: Rows) -> str:
    """First 16 hex digits of the SHA-256 over the rows' hashes, in order: a run goes on with the rows it began with."""
    hashes = ["train", *(row.row_hash for row in train), "val", *(row.row_hash for row in val)]
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()[:16]


def _told_apart(train: Rows) -> Rows:
    causes = {row.root_cause for row in train}
    if len(train) > 1 and len(causes) == 1:
        raise CompileError(
            f"all {len(train)} rows to learn from have the root cause {causes.pop()!r}: add rows of others"
        )
    return train
