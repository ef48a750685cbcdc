"""The YAML at the head of a card, by which `datasets.load_dataset` finds the files and the type of every field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dspy_reflex.errors import DatasetError, MissingExtraError
from dspy_reflex.evalset.labelled import LABEL_FIELDS, LabelledFailure
from dspy_reflex.evalset.load import SINGLE_SPLIT
from dspy_reflex.evalset.publishing.about import About
from dspy_reflex.evalset.writing import FAILURE_FIELDS

HUB_SINGLE_SPLIT = "train"
"""What the hub calls a set that is not divided: `all` means all splits there, and cannot be the name of one."""
SPLIT_NAME = re.compile(r"\w+(\.\w+)*")
"""What `datasets` takes as the name of a split."""
LISTS = ("also_acceptable", "existing_rules", "evidence")
JSON = "json"
TEXTS = tuple(name for name in (*FAILURE_FIELDS, *LABEL_FIELDS) if name != "context")
"""Fields that are text, or lists, also where no row has one."""
DATE = re.compile(r"\d{4}-\d\d-\d\d([T ][\d:.,]+)?(Z|[+-][\d:]+)?")
INT64 = range(-(2**63), 2**63)
"""What fits the hub's widest whole number."""
OWN_LICENCE = "LicenseRef-"
"""How SPDX writes a licence that it does not list."""

Splits = Mapping[str, Sequence[LabelledFailure]]


def front_matter(about: About, splits: Splits) -> str:
    """The YAML, without the lines of dashes.

    Raises:
        DatasetError: A split has a name that `datasets` cannot load.
        MissingExtraError: `datasets` is not installed.
    """
    try:
        from datasets.info import DatasetInfo, DatasetInfosDict  # pyright: ignore[reportMissingTypeStubs]
        from huggingface_hub import DatasetCardData
    except ImportError:
        raise MissingExtraError("publishing a data set", "compile") from None
    files = [{"split": hub_split(name, splits), "path": f"{name}.jsonl"} for name in splits]
    configuration = {"config_name": "default", "default": True, "data_files": files}
    fields: dict[str, Any] = {**_licence(about.licence), "pretty_name": about.title, "configs": [configuration]}
    card = DatasetCardData(**fields)
    rows = [row for rows in splits.values() for row in rows]
    DatasetInfosDict({"default": DatasetInfo(features=_features(rows))}).to_dataset_card_data(card)
    return str(card)


def hub_split(name: str, splits: Iterable[str]) -> str:
    """What a split is called on the hub.

    Raises:
        DatasetError: It cannot be loaded under its name.
    """
    if name == SINGLE_SPLIT:
        if len(list(splits)) > 1:
            raise DatasetError(f"{name}.jsonl: `datasets` keeps the name {name!r} for all splits; rename the file")
        return HUB_SINGLE_SPLIT
    if not SPLIT_NAME.fullmatch(name):
        raise DatasetError(f"{name}.jsonl: a split's name has letters, digits and _ only; rename the file")
    return name


def extra_fields(rows: Iterable[LabelledFailure]) -> list[str]:
    """The fields of the rows that this package does not know, in the order they come up."""
    return list(dict.fromkeys(name for row in rows for name in row.failure.model_extra or {}))


def _licence(spdx: str) -> dict[str, str]:
    if spdx.startswith(OWN_LICENCE):
        return {"license": "other", "license_name": spdx.removeprefix(OWN_LICENCE).lower()}
    return {"license": spdx.lower()}  # the hub knows them in lower case


def _features(rows: Sequence[LabelledFailure]) -> Any:
    """The type of every field."""
    from datasets import Features, Json, List, Value  # pyright: ignore[reportMissingTypeStubs]

    vote = {name: Value("string") for name in ("annotator", "root_cause", "second")}
    found: dict[str, Any] = {}
    for name in (*FAILURE_FIELDS, *LABEL_FIELDS, *extra_fields(rows)):
        kind = _kind([row.value(name) for row in rows], "string" if name in TEXTS else JSON)
        found[name] = Json() if kind == JSON else Value(kind)
    lists = {name: List(Value("string")) for name in LISTS}
    return Features(found | lists | {"key_points": List(List(Value("string"))), "votes": List(vote)})


def _kind(values: Iterable[object], default: str) -> str:
    """The type that all values have; JSON where they differ, or have one that the hub has no name for."""
    there = [value for value in values if value is not None]
    if not there:
        return default
    if all(isinstance(value, str) for value in there):
        # A column of dates is read as dates, whatever type is declared, and comes back spelled another way.
        return JSON if any(DATE.fullmatch(str(value)) for value in there) else "string"
    for kind, name in ((bool, "bool"), (float, "float64")):
        if all(type(value) is kind for value in there):
            return name
    return "int64" if all(type(value) is int and value in INT64 for value in there) else JSON
