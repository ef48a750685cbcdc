"""What a card says that no file can tell: read from a TOML file that a person wrote."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from dspy_reflex.errors import DatasetError, MissingExtraError
from dspy_reflex.evalset.problems import Problems

ADVICE = {
    "title": "name the data set",
    "licence": "give an SPDX identifier, such as CC-BY-4.0",
    "summary": "say in a sentence or two what the data set is",
    "made": "say where the failures come from, and whether people or machines wrote them",
    "labelled": "say who labelled them, by what guide, and what they saw",
    "splits": "say how the splits were made and what has looked at the test rows",
    "limits": "say what scores on this set do not show",
}
"""The keys that the file must have, and what belongs there."""
FIELDS = "fields"
"""The table that explains fields of the rows that this package does not know."""


@dataclass(frozen=True, slots=True)
class About:
    """What people say about a data set."""

    title: str
    licence: str
    """SPDX identifier, in its official spelling."""
    summary: str
    made: str
    """How the failures came about."""
    labelled: str
    """Who labelled them and how."""
    splits: str
    """How they were divided."""
    limits: str
    fields: Mapping[str, str] = field(default_factory=dict[str, str])
    """Field to what it holds, for fields that this package does not know."""


def read_about(file: Path) -> About:
    """Read a TOML file.

    Raises:
        DatasetError: It cannot be read, or keys are missing, unknown or no text; names all of them.
        MissingExtraError: The library that knows the licences is not installed.
    """
    data = _toml(file)
    problems = Problems()
    for key in data.keys() - ADVICE.keys() - {FIELDS}:
        problems.add(f"{file}", f"{key} is not known; the keys are {', '.join(ADVICE)} and [{FIELDS}]")
    texts = {key: _text(data.get(key)) for key in ADVICE}
    for key in [key for key, text in texts.items() if not text]:
        problems.add(f"{file}", f"{key} is {'no text' if key in data else 'missing'}; {ADVICE[key]}")
    explained = data.get(FIELDS, {})
    fields = cast(dict[str, Any], explained) if isinstance(explained, dict) else {}
    if fields is not explained:
        problems.add(f"{file}", f"{FIELDS} is no table; write [{FIELDS}] and a line for each field")
    for key in [key for key, text in fields.items() if not _text(text)]:
        problems.add(f"{file}", f"{FIELDS}.{key} is no text; say what the field holds")
    licence = _spdx(texts["licence"])
    if texts["licence"] and not licence:
        problems.add(f"{file}", f"licence {texts['licence']!r} is not one SPDX identifier; {ADVICE['licence']}")
    problems.raise_if_any()
    return About(**texts | {"licence": licence}, fields={key: _text(text) for key, text in fields.items()})


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        keys = ", ".join(ADVICE)
        raise DatasetError(f"{file}: no such file; write a TOML file with the keys {keys}") from None
    except OSError as error:
        raise DatasetError(f"{file}: cannot be read ({error.strerror}); check it") from None
    except UnicodeDecodeError as error:
        raise DatasetError(f"{file}: not UTF-8 at byte {error.start + 1}; save the file as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise DatasetError(f"{file}: not TOML ({error}); correct it") from None


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _spdx(text: str) -> str:
    """The official spelling of one licence; empty if it is none."""
    try:
        from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
    except ImportError:
        raise MissingExtraError("checking a licence", "compile") from None
    try:
        found = canonicalize_license_expression(text)
    except InvalidLicenseExpression:
        return ""
    return "" if " " in found else found
