"""Native labels to the six causes, by a table in a TOML file: one line a label, `label = ["cause", ...]`.

The first cause is the root cause; further ones stand where the native class cannot be decided and are also acceptable. An
empty list says that the label maps to none.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import cast

from pydantic import JsonValue, TypeAdapter, ValidationError

from dspy_reflex.errors import TaxonomyError
from dspy_reflex.evalset.importers.imported import Imported, Row
from dspy_reflex.taxonomies.load import DEFAULT, load_taxonomy

Mapped = Mapping[str, tuple[str, ...]]
"""Native label to causes."""

NO_LABEL = "(no label)"
"""Counts rows that nobody gave a label."""

_PACKAGE = "dspy_reflex.evalset.importers.mappings"
_SHAPE = TypeAdapter(dict[str, tuple[str, ...]])


@dataclass(frozen=True, slots=True)
class Six:
    """An import with the six causes in place of its native labels."""

    imported: Imported
    """The rows that map; `label_native` is as it was."""
    kept: Mapping[str, int]
    """How many rows of each native label map, most frequent first."""
    dropped: Mapping[str, int]
    """How many do not: the label maps to none, or is not in the table."""


def mappings() -> tuple[str, ...]:
    """Names of the tables that come with the package, sorted."""
    found = (entry.name for entry in files(_PACKAGE).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml")))


def load_mapping(name_or_path: str) -> Mapped:
    """Read a table.

    Args:
        name_or_path: Name of one that comes with the package, which wins over a file of that name, or path of a TOML file.

    Raises:
        TaxonomyError: There is none, or it is no such table.
    """
    if name_or_path in mappings():
        return _parse(files(_PACKAGE).joinpath(f"{name_or_path}.toml").read_bytes(), f"{name_or_path}.toml")
    try:
        content = Path(name_or_path).read_bytes()
    except FileNotFoundError:
        known = ", ".join(mappings())
        raise TaxonomyError(f"no mapping {name_or_path!r}: name one of {known}, or the path of a TOML file") from None
    except OSError as error:
        raise TaxonomyError(f"{name_or_path}: cannot be read ({error.strerror}); check the path") from None
    return _parse(content, name_or_path)


def to_six(imported: Imported, mapping: Mapped) -> Six:
    """Put causes in place of native labels; rows whose root cause maps to none are dropped.

    The causes of a row's further native labels become acceptable as well.
    """
    kept: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    rows: list[Row] = []
    for row in imported.rows:
        label = row["root_cause"]
        if isinstance(label, str) and mapping.get(label):
            kept[label] += 1
            rows.append(_mapped(row, label, mapping))
        else:
            dropped[str(label or NO_LABEL)] += 1
    names = {str(row["id"]) for row in rows}
    explanations = {name: text for name, text in imported.explanations.items() if name in names}
    return Six(
        Imported(tuple(rows), explanations, imported.skipped), dict(kept.most_common()), dict(dropped.most_common())
    )


def _mapped(row: Row, label: str, mapping: Mapped) -> Row:
    further = cast(list[str], row["also_acceptable"])
    causes = [cause for native in (label, *further) for cause in mapping.get(native, ())]
    others: list[JsonValue] = [*dict.fromkeys(cause for cause in causes if cause != causes[0])]
    return {**row, "root_cause": causes[0], "also_acceptable": others}


def _parse(content: bytes, source: str) -> Mapped:
    try:
        found = _SHAPE.validate_python(tomllib.loads(content.decode()))
    except UnicodeDecodeError:
        raise TaxonomyError(f"{source}: not UTF-8 text; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise TaxonomyError(f"{source}: not valid TOML: {error}; correct that line") from None
    except ValidationError:
        raise TaxonomyError(f'{source}: a mapping has one line a label, such as PLAN = ["reasoning_error"]') from None
    causes = load_taxonomy(DEFAULT).labels
    wrong = [(label, cause) for label, mapped in found.items() for cause in mapped if cause not in causes]
    if wrong:
        label, cause = wrong[0]
        raise TaxonomyError(f"{source}: {label!r} maps to {cause!r}, which is none of {', '.join(causes)}")
    return found
