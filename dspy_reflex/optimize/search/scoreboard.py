"""Who of the candidates is best: what each answered to which row of val, and who need not be asked any further.

It listens to every evaluation of DSPy's, so it knows the candidates of any optimizer that evaluates, and no pair of
candidate and row is asked twice. Candidates are compared by macro-F1 (or by cost) over all of val, which no metric of
single rows can say; of equals, the one with the shorter prompt is taken.
"""

from __future__ import annotations

import hashlib
import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from dspy_reflex.optimize.models.ledger import Ledger
from dspy_reflex.optimize.optimizers.base import ANY_NUMBER
from dspy_reflex.optimize.search.demos import in_turn

BLOCKS = 6
"""Val is asked in so many blocks; only between two of them is a candidate dropped, so threads change nothing."""
SMALLEST_BLOCK = 12
"""A block with fewer rows decides nothing."""
BEHIND = 1.0
"""Standard errors that a candidate must lie behind the leader to be dropped; one-sided, about 84 %."""
ALIKE = 0.5
"""Share of val on which a candidate must get the leader's points, row by row, to be dropped as no better."""
Criterion = Callable[[Mapping[str, Any]], float]
"""Score of the predictions to rows, by row hash; higher is better, in [0, 1]."""


@dataclass
class Candidate:
    """A program that was tried, and what it answered."""

    number: int
    module: Any
    prompt_chars: int
    demos: int
    predictions: dict[str, Any] = field(default_factory=dict[str, Any])
    points: dict[str, float] = field(default_factory=dict[str, float])
    """The metric of each row, by row hash."""
    dropped: bool = False
    calls: int = 0
    tokens: int = 0
    """What the whole compile had used when this one was last scored."""

    @property
    def mean(self) -> float:
        """The metric over the rows asked so far."""
        return statistics.fmean(self.points.values()) if self.points else 0.0


class Scoreboard(BaseCallback):
    """The candidates of one search over one val set."""

    def __init__(
        self,
        valset: Sequence[Any],
        metric: Callable[..., float],
        criterion: Criterion,
        ledger: Ledger,
        threads: int = 1,
        say: Callable[[str], None] = lambda _: None,
        ahead: Callable[[Any, Sequence[Any]], None] | None = None,
    ) -> None:
        """Begin with nobody.

        Args:
            valset: The rows to be scored on, as examples with `dspy_row`.
            metric: Points of one row.
            criterion: Score of all rows; what candidates are chosen by.
            ledger: The compile's bill.
            threads: Questions at a time.
            say: Told of each score.
            ahead: Given a module and the rows it is about to be asked; then val is one block.
        """
        self.candidates: list[Candidate] = []
        self._valset, self._rows = in_turn(valset), {example.dspy_row for example in valset}
        self._metric, self._criterion, self._ledger, self._threads, self._say = metric, criterion, ledger, threads, say
        self._ahead = ahead
        self._by_prompt: dict[str, Candidate] = {}
        self._running: dict[str, Candidate] = {}
        self._lock = threading.Lock()

    def race(self, module: Any) -> Candidate:
        """Score a candidate block by block, as long as it may still become the best."""
        candidate = self._known(module)
        for block in self._blocks():
            missing = [example for example in block if example.dspy_row not in candidate.points]
            if missing and not candidate.dropped:
                self._evaluate(module, missing)
                candidate.dropped = not self._is_finished(candidate) and self._is_behind(candidate)
        self._tell(candidate)
        return candidate

    def score(self, module: Any) -> Candidate:
        """Score a candidate on all of val, whatever it takes."""
        candidate = self._known(module)
        missing = [example for example in self._valset if example.dspy_row not in candidate.points]
        if missing:
            self._evaluate(module, missing)
        candidate.dropped = False
        return candidate

    def leader(self, but: Any = None) -> Any:
        """The best module that was scored on all of val, other than `but`; `but` itself if there is no other."""
        finished = self.finished(but)
        return max(finished, key=self._rank).module if finished else but

    def finished(self, but: Any = None) -> list[Candidate]:
        """The candidates that were scored on all of val, other than `but`."""
        other = self._prompt(but) if but is not None else ""
        everyone = [(prompt, candidate) for prompt, candidate in self._by_prompt.items() if prompt != other]
        return [candidate for _, candidate in everyone if self._is_finished(candidate)]

    @property
    def best(self) -> float | None:
        """The best score over all of val so far."""
        return max(
            (self.value(candidate) for candidate in list(self.candidates) if self._is_finished(candidate)), default=None
        )

    def value(self, candidate: Candidate) -> float:
        """The criterion over the rows asked so far; 0 if there are none yet."""
        return self._criterion(candidate.predictions) if candidate.predictions else 0.0

    def to_json(self, chosen: Any) -> list[dict[str, Any]]:
        """A row for each candidate, in the order in which they were met."""
        best = self._prompt(chosen)
        return [self._row(candidate, prompt == best) for prompt, candidate in self._by_prompt.items()]

    def on_evaluate_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Called by DSPy before an evaluation."""
        with self._lock:
            self._ledger.evaluating += 1
            if any(example.get("dspy_row") in self._rows for example in inputs.get("devset") or instance.devset):
                self._running[call_id] = self._known(inputs["program"])

    def on_evaluate_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Called by DSPy after an evaluation."""
        with self._lock:
            self._ledger.evaluating -= 1
            candidate = self._running.pop(call_id, None)
            if candidate is None:
                return
            for example, prediction, points in outputs.results if outputs is not None else ():
                if example.get("dspy_row") in self._rows:
                    # a program that is traced, as GEPA does, answers with a pair of prediction and trace
                    candidate.predictions[example.dspy_row] = prediction[0] if type(prediction) is tuple else prediction
                    candidate.points[example.dspy_row] = float(points)
            candidate.calls, candidate.tokens = self._ledger.calls, self._ledger.tokens

    def on_adapter_parse_end(
        self, call_id: str, outputs: dict[str, Any] | None, exception: BaseException | None = None
    ) -> None:
        """Called by DSPy when an answer was read, or could not be."""
        if exception is not None:
            self._ledger.unusable()

    def _evaluate(self, module: Any, examples: Sequence[Any]) -> None:
        if self._ahead:
            self._ahead(module, examples)
        evaluate = dspy.Evaluate(
            devset=list(examples), metric=self._metric, num_threads=self._threads, max_errors=ANY_NUMBER
        )
        evaluate(module)

    def _blocks(self) -> list[list[Any]]:
        size = len(self._valset) if self._ahead else max(SMALLEST_BLOCK, -(-len(self._valset) // BLOCKS))
        return [self._valset[start : start + size] for start in range(0, len(self._valset), size)]

    def _is_behind(self, candidate: Candidate) -> bool:
        """Whether the interval of its difference to the leader, on the rows of both, lies below 0.

        One that has answered much of val just as the leader did is not worth the rest: it would be as good.
        """
        finished = [other for other in self.candidates if self._is_finished(other)]
        if not finished:
            return False
        leader = max(finished, key=self._rank)
        gaps = [points - leader.points[row] for row, points in candidate.points.items()]
        error = statistics.stdev(gaps) / len(gaps) ** 0.5
        best_case = statistics.fmean(gaps) + BEHIND * error
        return best_case < 0 or (not any(gaps) and len(gaps) >= ALIKE * len(self._rows))

    def _is_finished(self, candidate: Candidate) -> bool:
        return candidate.points.keys() >= self._rows

    def _rank(self, candidate: Candidate) -> tuple[float, int, int]:
        return self.value(candidate), -candidate.prompt_chars, -candidate.number

    def _known(self, module: Any) -> Candidate:
        prompt = self._prompt(module)
        if prompt not in self._by_prompt:
            demos = [demo for predictor in module.predictors() for demo in predictor.demos]
            chars = sum(len(str(value)) for demo in demos for value in demo.values())
            chars += sum(len(predictor.signature.instructions) for predictor in module.predictors())
            known = Candidate(len(self.candidates), module.deepcopy(), chars, len(demos))
            vars(known.module).pop("forward", None)  # what DSPy puts into a program while it traces it
            self._by_prompt[prompt] = known
            self.candidates.append(known)
        return self._by_prompt[prompt]

    def _prompt(self, module: Any) -> str:
        """What tells a candidate from others: its instructions and demos."""
        parts = [
            (predictor.signature.instructions, [sorted(map(repr, demo.items())) for demo in predictor.demos])
            for predictor in module.predictors()
        ]
        return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()

    def _row(self, candidate: Candidate, best: bool) -> dict[str, Any]:
        return {
            "candidate": candidate.number,
            "score": round(self.value(candidate), 4),
            "rows": len(candidate.points),
            "dropped": candidate.dropped,
            "calls": candidate.calls,
            "tokens": candidate.tokens,
            "prompt_tokens": candidate.prompt_chars // 4,
            "demos": candidate.demos,
            "best": best,
        }

    def _tell(self, candidate: Candidate) -> None:
        best = "" if self.best is None else f", best {self.best:.3f}"
        what = f"dropped after {len(candidate.points)} of {len(self._rows)} rows" if candidate.dropped else "scored"
        self._say(
            f"candidate {candidate.number}: {self.value(candidate):.3f}, {what}{best}; {self._ledger.calls} calls so far"
        )
