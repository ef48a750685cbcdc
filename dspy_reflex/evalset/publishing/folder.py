"""Write a labelled set as the folder that is published: nothing is written before all of it is known to be usable."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.checks.run import validate
from dspy_reflex.evalset.labelled import UNLABELLED_SPLITS, EvalSet
from dspy_reflex.evalset.publishing.about import FIELDS, read_about
from dspy_reflex.evalset.publishing.card import card_of
from dspy_reflex.evalset.publishing.front_matter import extra_fields
from dspy_reflex.evalset.publishing.proof import CARD, prove
from dspy_reflex.evalset.writing import MANIFEST, to_lines, to_object, write_splits
from dspy_reflex.files import write_atomic
from dspy_reflex.records.taxonomy import Taxonomy

ORDER = ("train", "val", "test", "test_hard", *UNLABELLED_SPLITS)
"""The order of splits in a card; others follow by name."""
ERRORS_SHOWN = 3
DEFAULT_TAXONOMY = "six"
"""What commands check labels against unless told otherwise."""
VERSION_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Published:
    """A folder as it was written."""

    folder: Path
    version: str
    """The first digits of a hash over all splits."""
    rows: Mapping[str, int]
    """Split to its rows."""
    files: Mapping[str, int]
    """File to its bytes: all that belongs to the data set, whatever else lies in the folder."""


def publish(path: Path, about_file: Path, out: Path, taxonomy: Taxonomy) -> Published:
    """Check a labelled set and write it with its card.

    Args:
        path: A folder of splits, or one file.
        about_file: TOML with what people say about it (see `About`).
        out: Where to: a folder that is empty or not there yet, or `path` itself, to publish it again in place.
        taxonomy: What the labels are checked against.

    Raises:
        DatasetError: `data validate` finds errors, the TOML file or a split's name cannot be used, `out` is taken, or
            `datasets.load_dataset` would not give the rows back.
        MissingExtraError: A library is not installed.
        OSError: A file cannot be written.
    """
    about = read_about(about_file)
    _free(out, path)
    evalset = _valid(path, taxonomy)
    rows = [row for rows in evalset.splits.values() for row in rows]
    if unused := sorted(about.fields.keys() - set(extra_fields(rows))):
        raise DatasetError(f"{about_file}: no row has {', '.join(unused)}; take it out of [{FIELDS}]")
    version = _version(evalset)
    card = card_of(evalset, about, version)
    prove(evalset, card)
    write_atomic(out / CARD, card.encode())
    write_splits(out, evalset.splits)
    names = [CARD, *(f"{name}.jsonl" for name in evalset.splits), MANIFEST]
    return Published(
        out,
        version,
        {name: len(rows) for name, rows in evalset.splits.items()},
        {name: (out / name).stat().st_size for name in names},
    )


def _free(out: Path, path: Path) -> None:
    if out.resolve() == path.resolve() and path.is_dir():
        return
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise DatasetError(f"{out}: is not empty and not {path} itself; give a new folder")


def _valid(path: Path, taxonomy: Taxonomy) -> EvalSet:
    """The set with its splits in order, if it has no errors."""
    evalset, found = validate(path, taxonomy)
    errors = [one for one in found if one.level == "error"]
    if errors:
        shown = "".join(f"\n  {one.where}: {one.text}" for one in errors[:ERRORS_SHOWN])
        more = f"\n  ... and {len(errors) - ERRORS_SHOWN} more" if len(errors) > ERRORS_SHOWN else ""
        noun = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
        command = f"dspy-reflex data validate {path}"
        command += "" if taxonomy.name == DEFAULT_TAXONOMY else f" --taxonomy {taxonomy.name}"
        raise DatasetError(f"{path}: {noun}, nothing was published; `{command}` shows all:{shown}{more}")
    names = [name for name in ORDER if name in evalset.splits]
    names += sorted(evalset.splits.keys() - set(ORDER))
    return EvalSet(evalset.name, evalset.taxonomy, {name: evalset.splits[name] for name in names})


def _version(evalset: EvalSet) -> str:
    digest = hashlib.sha256()
    for name in sorted(evalset.splits):
        content = to_lines(map(to_object, evalset.splits[name]))
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:VERSION_DIGITS]
