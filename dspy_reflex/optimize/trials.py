"""What an optimizer tried: a DSPy callback that notes the score of every full evaluation and tells of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from dspy.utils.callback import BaseCallback

from dspy_reflex.optimize.ledger import Ledger


class Trials(BaseCallback):
    """The evaluations of a compile, in order."""

    def __init__(self, say: Callable[[str], None], ledger: Ledger) -> None:
        """Tell `say` of each evaluation, with what it cost so far."""
        self.rows: list[dict[str, Any]] = []
        self._say = say
        self._ledger = ledger
        self._lock = threading.Lock()

    def on_evaluate_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Called by DSPy when an evaluation is over."""
        if outputs is None or exception is not None:
            return
        with self._lock:
            score = float(outputs.score) / 100
            self.rows.append({"trial": len(self.rows), "score": round(score, 4), "rows": len(outputs.results)})
            best = max(row["score"] for row in self.rows)
        self._say(f"trial {len(self.rows) - 1}: {score:.3f} (best {best:.3f}), {self._ledger.calls} calls so far")
