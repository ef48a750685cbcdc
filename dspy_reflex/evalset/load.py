"""Read labelled and unlabelled failures, and say all that is wrong with a file in one message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.labelled import UNLABELLED_SPLITS, EvalSet, LabelledFailure
from dspy_reflex.evalset.lines import Line, read_lines
from dspy_reflex.evalset.problems import Problems
from dspy_reflex.evalset.rows import to_failure, to_labelled
from dspy_reflex.records.failure import Failure
from dspy_reflex.records.taxonomy import Taxonomy

SINGLE_SPLIT = "all"
"""The split of a data set that is one file."""
STDIN = "-"


def load_evalset(path: str | Path, taxonomy: Taxonomy, skipped: Problems | None = None) -> EvalSet:
    """Read a folder in which every `*.jsonl` is a split, or one JSON Lines file.

    Args:
        path: The folder or the file.
        taxonomy: What the labels are checked against.
        skipped: Where rows that cannot be used are noted, to go on with the others; without it they are an error.

    Raises:
        DatasetError: It is missing or cannot be used; names file, line and field of every problem.
    """
    place = Path(path)
    problems = Problems() if skipped is None else skipped
    lines = {name: _read(file, problems) for name, file in _files(place).items()}
    lines = _unique(lines, problems)
    splits = {name: _labelled(name, found, taxonomy, problems) for name, found in lines.items()}
    if skipped is None:
        problems.raise_if_any()
    return EvalSet(place.stem if place.is_file() else place.name, taxonomy, splits)


def load_failures(
    path: str | Path, stdin: IO[bytes] | IO[str] | None = None, skipped: Problems | None = None
) -> list[Failure]:
    """Read unlabelled failures: JSON Lines with at least `task` and `actual_outcome`.

    Args:
        path: The file; `-` for `stdin`.
        stdin: Where `-` reads from.
        skipped: Where lines that cannot be used are noted, to go on with the others; without it they are an error.

    Raises:
        DatasetError: It is missing or cannot be used; names file, line and field of every problem.
    """
    problems = Problems() if skipped is None else skipped
    if str(path) == STDIN and stdin is not None:
        content = stdin.read()
        # Text that Python decoded itself may hold escaped bytes; they surface as what they are: not UTF-8.
        raw = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        lines = read_lines(raw, "<stdin>", problems)
    else:
        lines = _read(Path(path), problems)
    failures = [to_failure(line, problems) for line in _unique({STDIN: lines}, problems)[STDIN]]
    if skipped is None:
        problems.raise_if_any()
    return [failure for failure in failures if failure is not None]


def _files(place: Path) -> dict[str, Path]:
    if not place.is_dir():
        return {SINGLE_SPLIT: place}
    files = {file.stem: file for file in sorted(place.glob("*.jsonl")) if not file.name.startswith(".")}
    if not files:
        raise DatasetError(f"{place}: no *.jsonl file in this folder; put train.jsonl, val.jsonl and test.jsonl there")
    return files


def _read(file: Path, problems: Problems) -> list[Line]:
    try:
        return read_lines(file.read_bytes(), str(file), problems)
    except FileNotFoundError:
        raise DatasetError(f"{file}: no such file; give a JSON Lines file or a folder of them") from None
    except IsADirectoryError:
        raise DatasetError(f"{file}: a folder; give one JSON Lines file") from None
    except OSError as error:
        raise DatasetError(f"{file}: cannot be read ({error.strerror}); check its permissions") from None


def _labelled(split: str, lines: Sequence[Line], taxonomy: Taxonomy, problems: Problems) -> tuple[LabelledFailure, ...]:
    # A row without a cause is one that annotators blamed nothing in, or nobody has labelled yet: votes tell them apart.
    rows = [
        to_labelled(
            line,
            taxonomy.labels,
            problems,
            needs_cause=split not in UNLABELLED_SPLITS and not line.data.get("votes"),
        )
        for line in lines
    ]
    return tuple(row for row in rows if row is not None)


def _unique(lines: Mapping[str, Sequence[Line]], problems: Problems) -> dict[str, list[Line]]:
    """The lines whose id no earlier one has: an id names one row of the whole set."""
    first: dict[str, str] = {}
    kept: dict[str, list[Line]] = {}
    for split, found in lines.items():
        kept[split] = []
        for line in found:
            name = "" if line.data.get("id") is None else str(line.data["id"]).strip()
            if name and name in first:
                problems.add(line.where, f"id {name!r} is already at {first[name]}; give every failure its own id")
            else:
                first[name] = line.where
                kept[split].append(line)
    return kept
