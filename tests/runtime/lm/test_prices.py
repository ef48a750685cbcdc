"""What answers cost."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

import pytest

from dspy_reflex.errors import ConfigError
from dspy_reflex.runtime.lm.prices import PRICES_VARIABLE, cost_usd

MILLION = 1_000_000


@pytest.fixture(autouse=True)
def _no_own_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PRICES_VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("model", "usd"),
    [
        ("anthropic/claude-opus-5-5", 24.0),
        ("anthropic/claude-haiku-4-5-20251001", 6.0),
        ("openai/gpt-5", 11.25),
        ("openai/gpt-5-2025-08-07", 11.25),
        ("openai/gpt-5-mini", 2.25),
        ("openai/gpt-5.6-luna", 1.4),
        ("offline/1", 0.0),
        ("ollama_chat/llama3.2", 0.0),
        ("hosted_vllm/org/m", 0.0),
    ],
)
def test_a_million_tokens_each_way(model: str, usd: float) -> None:
    """The longest name counts, and a snapshot costs what its model does."""
    assert cost_usd(model, MILLION, MILLION) == pytest.approx(usd)


@pytest.mark.parametrize("model", ["openai/gpt-5.9", "openai/gpt-5-giga", "anthropic/claude-opus-5-6", "gpt-5", "x/y"])
def test_an_unknown_model_has_no_price(model: str) -> None:
    """None, not zero, and not the price of another whose name it begins with."""
    assert cost_usd(model, 1, 1) is None


def test_input_and_output_are_priced_apart() -> None:
    """One token of each kind."""
    assert cost_usd("openai/gpt-4o", 1, 0) == pytest.approx(2.5e-6)
    assert cost_usd("openai/gpt-4o", 0, 1) == pytest.approx(10e-6)


def test_what_a_cache_had_or_got_has_a_price_of_its_own() -> None:
    """Opus 5.5 reads at a twentieth, others at a tenth; writing costs a quarter more."""
    opus, haiku = "anthropic/claude-opus-5-5", "anthropic/claude-haiku-4-5"
    assert cost_usd(opus, MILLION, 0, cache_read_tokens=MILLION) == pytest.approx(0.2)
    assert cost_usd(opus, 2 * MILLION, 0, cache_read_tokens=MILLION) == pytest.approx(4.2)
    assert cost_usd(haiku, MILLION, 0, cache_read_tokens=MILLION) == pytest.approx(0.1)
    assert cost_usd(haiku, MILLION, 0, cache_write_tokens=MILLION) == pytest.approx(1.25)
    assert cost_usd("openai/gpt-4o", MILLION, 0, cache_read_tokens=MILLION) == pytest.approx(2.5)


def test_a_batch_costs_half() -> None:
    """Whatever the tokens are."""
    opus = "anthropic/claude-opus-5-5"
    alone = cost_usd(opus, 1_000, 50, cache_read_tokens=300, cache_write_tokens=200)
    together = cost_usd(opus, 1_000, 50, cache_read_tokens=300, cache_write_tokens=200, batch=True)
    assert alone is not None
    assert together == pytest.approx(alone / 2)


def test_every_price_in_the_table_is_one() -> None:
    """Output costs more than input everywhere, Anthropic's cache is priced, and the source is dated."""
    text = resources.files("dspy_reflex.runtime.lm").joinpath("prices.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)["usd_per_million_tokens"]
    assert all(0 < price["input"] < price["output"] for price in table.values())
    cached = [price for name, price in table.items() if name.startswith("anthropic/")]
    assert all(0 < price["cache_read"] < price["input"] < price["cache_write"] for price in cached)
    assert "2026-" in text.splitlines()[1]


def test_own_prices_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rented server has a price, a known model another one; the rest of the table stays."""
    own = tmp_path / "prices.toml"
    own.write_text(
        '[usd_per_million_tokens]\n"hosted_vllm/m" = { input = 1, output = 2 }\n'
        '"openai/gpt-4o" = { input = 0, output = 0 }\n'
    )
    monkeypatch.setenv(PRICES_VARIABLE, str(own))
    assert cost_usd("hosted_vllm/m", MILLION, MILLION) == 3.0
    assert cost_usd("openai/gpt-4o", MILLION, MILLION) == 0.0
    assert cost_usd("openai/gpt-4o-mini", MILLION, 0) == pytest.approx(0.15)


def test_a_snapshot_with_a_price_of_its_own_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest name that fits counts."""
    own = tmp_path / "prices.toml"
    own.write_text(
        '[usd_per_million_tokens]\n"x/m" = { input = 1, output = 1 }\n"x/m-2026-01-01" = { input = 5, output = 5 }\n'
    )
    monkeypatch.setenv(PRICES_VARIABLE, str(own))
    assert cost_usd("x/m-2026-01-01", MILLION, 0) == 5.0
    assert cost_usd("x/m-2026-02-02", MILLION, 0) == 1.0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "No such file"),
        ("x = [", "cannot be used"),
        ("", "'usd_per_million_tokens' is missing"),
        ("usd_per_million_tokens = 3", "cannot be used"),
        ("[usd_per_million_tokens]\nm = 3", "cannot be used"),
        ("[usd_per_million_tokens]\nm = {input = 3}", "'output' is missing"),
        ("[usd_per_million_tokens]\nm = {input = 3, output = 'free'}", "free"),
        ("[usd_per_million_tokens]\nm = {input = -3, output = 1}", "0 or more"),
        ("[usd_per_million_tokens]\nm = {input = 3, output = nan}", "0 or more"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, reason: str
) -> None:
    """A typo never falls back to other prices in silence."""
    own = tmp_path / "own.toml"
    if text is not None:
        own.write_text(text)
    monkeypatch.setenv(PRICES_VARIABLE, str(own))
    with pytest.raises(ConfigError, match=reason) as caught:
        cost_usd("offline", 1, 1)
    assert str(own) in str(caught.value)
