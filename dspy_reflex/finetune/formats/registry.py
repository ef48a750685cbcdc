"""Every format by name. A format is imported when it is wanted, so that the command line knows the names for nothing."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dspy_reflex.errors import ExportError

if TYPE_CHECKING:
    from dspy_reflex.finetune.formats.base import Format

NAMES = (
    "trl", "trl_messages", "trl_text", "axolotl", "llama_factory", "bedrock", "openai", "sharegpt", "alpaca", "dspy", "parquet",
)  # fmt: skip
"""What `export --format` takes; each has a module of its name here with a constant `FORMAT`."""


def format_of(name: str) -> Format:
    """The format of this name.

    Raises:
        ExportError: There is none.
    """
    if name not in NAMES:
        raise ExportError(f"{name!r} is no format; it is one of {', '.join(NAMES)}")
    return import_module(f"{__package__}.{name}").FORMAT
