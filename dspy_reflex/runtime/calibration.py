"""What a stated confidence is worth: the share of answers that are right when a program says that it is so sure.

A compile fits two numbers on answers that it knows to be right or wrong (`optimize.calibrate`), and the artefact carries
them. They hold for the model they were fitted with. Standard library only.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeGuard

SQUEEZE = 0.005
"""Half a percent: nobody who states 0 or 1 means less, and the logarithm of the odds stays finite."""
DIGITS = 4
"""Decimals of a calibrated confidence: the same on every machine."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """A rising curve from stated confidence to the probability of being right."""

    slope: float
    """Factor on the log-odds of the stated confidence; above 0, so that a surer answer stays the surer one."""
    shift: float
    """Added to them: below 0 where the model is too sure of itself."""
    n: int
    """Answers that it was fitted on."""

    def of(self, stated: float) -> float:
        """The probability, in [0, 1], that an answer with this stated confidence is right.

        The logistic curve of J. Platt: Probabilistic outputs for support vector machines, Advances in Large Margin
        Classifiers, 1999; on log-odds, as temperature scaling has it, and with a shift.
        """
        odds = self.slope * log_odds(stated) + self.shift
        return round(0.5 * (1.0 + math.tanh(odds / 2)), DIGITS)

    def to_json(self) -> dict[str, Any]:
        """As the artefact carries it."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Calibration:
        """The way back.

        Raises:
            ValueError: A number is missing or is none, or the slope would not keep the order.
        """
        slope, shift, n = (data.get(key) for key in ("slope", "shift", "n"))
        if not _is_number(slope) or slope <= 0 or not _is_number(shift) or not isinstance(n, int):
            raise ValueError("a calibration has a slope above 0, a shift, and the n it was fitted on")
        return cls(slope, shift, n)


def log_odds(stated: float) -> float:
    """The log-odds of a confidence, which is first squeezed away from 0 and 1.

    The squeeze is linear, so no two confidences become one (M. Smithson, J. Verkuilen: A better lemon squeezer?,
    Psychological Methods 11, 2006).
    """
    inside = SQUEEZE + (1 - 2 * SQUEEZE) * stated
    return math.log(inside / (1 - inside))


def probability(value: object) -> float | None:
    """A stated confidence as a number in [0, 1]; None if it is no number. Some models answer 85 or nan."""
    if not _is_number(value):
        return None
    return min(1.0, max(0.0, float(value)))


def _is_number(value: object) -> TypeGuard[float]:
    """Whether it can be reckoned with: no truth value, not nan, not infinite, not too large for a float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
