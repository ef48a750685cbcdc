"""What docs/loop.md says of settings, states and error rates is what the code and the committed results say."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from dspy_reflex.config import Settings
from dspy_reflex.records.review import MOVES

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "loop.md").read_text(encoding="utf-8")
WORDS = " ".join(PAGE.split())


@pytest.mark.parametrize("block", re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
def test_settings_can_be_used(block: str) -> None:
    Settings.model_validate(tomllib.loads(block))


def test_states_and_ways_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| (\w+) \| (.+) \|$", PAGE, re.MULTILINE)
    told = {
        start: set(re.findall(r"\b(?:approved|rejected|deferred|applied|kept|reverted)\b", ways))
        for start, ways in rows
    }
    assert {start: ways for start, ways in told.items() if start in MOVES} == {
        start: set(ways) for start, ways in MOVES.items() if ways
    }


def test_error_rates_of_verify_are_the_measured_ones() -> None:
    result = json.loads((ROOT / "experiments" / "verify" / "result.json").read_text())
    worst = max(cell["said"] for world in result["nothing_changed"].values() for cell in world.values())
    daily = result["nothing_changed_looked_at_daily"]["said"]
    assert f"{worst:.1%} at worst".replace("%", " %") in WORDS
    assert f"errs more often ({daily:.0%})".replace("%", " %") in WORDS


def test_costs_are_the_measured_ones() -> None:
    lat = json.loads((ROOT / "experiments" / "log-latency" / "result.json").read_text())
    cells = [f"{one['p50_us']:.1f}, {one['p99_us']:.0f}" for one in lat["ours"].values()]
    peers = [f"{one['p50_us']:,.0f} µs" for one in lat["peers"].values()]
    stores = json.loads((ROOT / "experiments" / "loop-throughput" / "result.json").read_text())["stores"]
    rates = [
        f"{one[name]:,.0f}"
        for one in stores
        for name in ("taken_in_per_s", "diagnosed_per_s", "repeats_diagnosed_per_s")
    ]
    looks = [f"{one['status_ms']:.1f}" for one in stores]
    assert [one for one in (*cells, *peers, *rates, *looks) if one not in WORDS] == []
    assert lat["at_once"] == {**lat["at_once"], "events": 80_000, "there": 80_000, "bad": 0}
