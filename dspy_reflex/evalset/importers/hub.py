"""Data sets of the Hugging Face hub, or in a folder laid out like one; read with its own library, imported late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dspy_reflex.errors import DatasetError, MissingExtraError

HUB = "hf:"
"""How an address of the hub begins: `hf:owner/name`, `hf:owner/name:split`, `hf:./folder`."""


def hub_objects(address: str) -> list[tuple[str, dict[str, Any], str]]:
    """Place, object, and `configuration/split` of everything in a data set.

    Args:
        address: `hf:owner/name[:split]`; without a split, all splits of all configurations.

    Raises:
        DatasetError: It cannot be loaded, or has no such split.
        MissingExtraError: The library `datasets` is not installed.
    """
    name, _, wanted = address.removeprefix(HUB).partition(":")
    seen: list[str] = []
    found: list[tuple[str, dict[str, Any], str]] = []
    for part, rows in _splits(name):
        seen.append(part)
        if wanted in ("", part.partition("/")[2]):
            found += [(f"{HUB}{name}/{part}:{number}", row, part) for number, row in enumerate(rows, start=1)]
    if not found:
        raise DatasetError(f"{address}: no rows; the data set has {', '.join(seen) or 'no splits'}")
    return found


def _splits(name: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """`configuration/split` and its rows. All that the library leaves untyped stays in here."""
    try:
        from datasets import (  # pyright: ignore[reportMissingTypeStubs]
            get_dataset_config_names,  # pyright: ignore[reportUnknownVariableType]
            load_dataset,  # pyright: ignore[reportUnknownVariableType]
        )
    except ImportError:
        raise MissingExtraError("reading from Hugging Face", "compile") from None
    try:
        for configuration in get_dataset_config_names(name):
            loaded: Any = load_dataset(name, configuration)
            for split, rows in loaded.items():
                yield f"{configuration}/{split}", [dict(row) for row in rows]
    except Exception as error:  # it raises whatever its readers, the network or the hub raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DatasetError(
            f"{HUB}{name}: cannot be loaded ({reason}); check the name and the network, or fetch the files and give their folder"
        ) from error
