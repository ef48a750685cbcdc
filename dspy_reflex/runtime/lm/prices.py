"""What an answer cost, from a small dated table of prices.

An estimate to keep a budget by, not an invoice: regions and the surcharges on very long prompts are not counted. A
price that is not known is None, never zero, and no model is priced as another.
"""

from __future__ import annotations

import os
import re
import tomllib
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from dspy_reflex.errors import ConfigError

PRICES_VARIABLE = "REFLEX_PRICES"
"""Environment variable with the path of a file of one's own prices, in the form of `prices.toml`."""
LOCAL_PREFIXES = ("offline", "ollama_chat", "hosted_vllm")
"""Providers that no one pays by the token."""

BATCH_SHARE = 0.5
"""What a token costs in a batch, cached or not, as a share of its price: Anthropic's pricing page, all its models."""

_SNAPSHOT = re.compile(r"(-\d{8}|-\d{4}-\d\d-\d\d|-latest|@\d{8})?")
_TABLE = "usd_per_million_tokens"


class Price(NamedTuple):
    """USD for a million tokens."""

    input: float
    output: float
    cache_read: float
    """Of input that the provider had in its prompt cache; the price of input where the table says nothing."""
    cache_write: float
    """Of input that it put there; likewise."""


def cost_usd(
    model: str,
    input_tokens: int,
    output_tokens: int,
    *,
    cache_read_tokens: int = 0,
    cache_write_tokens: int = 0,
    batch: bool = False,
) -> float | None:
    """Return what calls cost in USD, or None when the model's price is not known.

    The longest name in the table that `model` begins with counts, if only the date of a snapshot or `-latest` follows:
    `openai/gpt-5-2025-08-07` costs what `openai/gpt-5` does, `openai/gpt-5-mini` does not. One's own prices come first.

    Args:
        model: Provider and name, as `anthropic/claude-opus-5-5`.
        input_tokens: As the provider counted them.
        output_tokens: As the provider counted them, reasoning included.
        cache_read_tokens: Those of the input tokens that were read from the provider's prompt cache.
        cache_write_tokens: Those of the input tokens that were written to it.
        batch: Whether they were asked in a batch.

    Raises:
        ConfigError: The file that REFLEX_PRICES names cannot be used.
    """
    price = _find(_own_prices(os.environ.get(PRICES_VARIABLE, "")), model) or _find(_known_prices(), model)
    if price is None:
        return 0.0 if model.partition("/")[0] in LOCAL_PREFIXES else None
    plain = input_tokens - cache_read_tokens - cache_write_tokens
    usd = plain * price.input + cache_read_tokens * price.cache_read + cache_write_tokens * price.cache_write
    return (usd + output_tokens * price.output) * (BATCH_SHARE if batch else 1.0) / 1_000_000


def _find(prices: dict[str, Price], model: str) -> Price | None:
    names = [name for name in prices if model.startswith(name) and _SNAPSHOT.fullmatch(model[len(name) :])]
    return prices[max(names, key=len)] if names else None


@cache
def _known_prices() -> dict[str, Price]:
    text = resources.files("dspy_reflex.runtime.lm").joinpath("prices.toml").read_text(encoding="utf-8")
    return {name: _price(value) for name, value in tomllib.loads(text)[_TABLE].items()}


@cache
def _own_prices(path: str) -> dict[str, Price]:
    if not path:
        return {}
    try:
        prices = tomllib.loads(Path(path).read_text(encoding="utf-8"))[_TABLE]
        return {name: _price(value) for name, value in prices.items()}
    except KeyError as error:
        raise ConfigError(f"{path} ({PRICES_VARIABLE}): {error} is missing.") from error
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise ConfigError(f"{path} ({PRICES_VARIABLE}) cannot be used as a table of prices: {error}.") from error


def _price(value: dict[str, Any]) -> Price:
    plain = float(value["input"])
    cached = (float(value.get(name, plain)) for name in ("cache_read", "cache_write"))
    price = Price(plain, float(value["output"]), *cached)
    if not all(0 <= each < float("inf") for each in price):
        raise ValueError(f"a price must be 0 or more, not {value}")
    return price
