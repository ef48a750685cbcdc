"""Every format, by name."""

from __future__ import annotations

from collections.abc import Mapping

from dspy_reflex.finetune.formats.alpaca import ALPACA
from dspy_reflex.finetune.formats.axolotl import AXOLOTL
from dspy_reflex.finetune.formats.base import Format
from dspy_reflex.finetune.formats.bedrock import BEDROCK
from dspy_reflex.finetune.formats.dspy_chat import DSPY
from dspy_reflex.finetune.formats.llama_factory import LLAMA_FACTORY
from dspy_reflex.finetune.formats.openai import OPENAI
from dspy_reflex.finetune.formats.parquet import PARQUET
from dspy_reflex.finetune.formats.sharegpt import SHAREGPT
from dspy_reflex.finetune.formats.trl import TRL
from dspy_reflex.finetune.formats.trl_messages import TRL_MESSAGES
from dspy_reflex.finetune.formats.trl_text import TRL_TEXT

_ALL = (TRL, TRL_MESSAGES, TRL_TEXT, AXOLOTL, LLAMA_FACTORY, BEDROCK, OPENAI, SHAREGPT, ALPACA, DSPY, PARQUET)

FORMATS: Mapping[str, Format] = {one.name: one for one in _ALL}
"""What `export --format` takes."""
