"""A calibrated confidence is a probability, keeps the order of answers, and survives the artefact."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.runtime.calibration import SQUEEZE, Calibration, log_odds, probability

SHARES = st.floats(0, 1)
CURVES = st.builds(Calibration, st.floats(0.01, 50), st.floats(-50, 50), st.integers(0, 10_000))


@given(CURVES, SHARES, SHARES)
def test_a_surer_answer_stays_the_surer_one(curve: Calibration, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0 <= curve.of(low) <= curve.of(high) <= 1


@given(SHARES)
def test_slope_one_and_no_shift_change_nothing(stated: float) -> None:
    """But for the squeeze, and the rounding."""
    assert Calibration(1, 0, 72).of(stated) == pytest.approx(stated, abs=SQUEEZE + 0.0001)


def test_the_curve_by_hand() -> None:
    assert Calibration(3, -1, 72).of(0.5) == pytest.approx(1 / (1 + math.e), abs=0.0001)
    assert Calibration(2, 0, 72).of(0.8) == pytest.approx(0.797**2 / (0.797**2 + 0.203**2), abs=0.0001)
    assert log_odds(1.0) == pytest.approx(math.log(199))


def test_no_curve_is_too_steep_to_reckon_with() -> None:
    assert [Calibration(1e308, 0, 72).of(stated) for stated in (0, 0.5, 1)] == [0, 0.5, 1]


@given(CURVES)
def test_what_is_written_is_read_back(curve: Calibration) -> None:
    assert Calibration.from_json(json.loads(json.dumps(curve.to_json()))) == curve


@pytest.mark.parametrize(
    "changed",
    [
        *({"slope": 0}, {"slope": -1.5}, {"slope": None}, {"slope": "1"}, {"slope": True}, {"slope": math.nan}),
        *({"slope": math.inf}, {"slope": 10**400}, {"shift": None}, {"shift": math.inf}, {"n": 1.5}, {"n": None}),
    ],
)
def test_what_is_no_curve_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="a slope above 0"):
        Calibration.from_json({"slope": 1.0, "shift": 0.0, "n": 72, **changed})


@pytest.mark.parametrize(
    ("stated", "read"),
    [(0.25, 0.25), (1, 1.0), (85, 1.0), (-3.0, 0.0), (math.nan, None), (math.inf, None), ("0.9", None), (None, None)],
)
def test_a_stated_confidence_is_a_probability_or_nothing(stated: object, read: float | None) -> None:
    assert probability(stated) == read
