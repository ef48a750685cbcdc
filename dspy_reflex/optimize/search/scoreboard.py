"""Who of the candidates is best: what each answered to which row of val, and who need not be asked any further.

It listens to every evaluation of DSPy's, so it knows the candidates of any optimizer that evaluates, and no pair of
candidate and row is asked twice. Candidates are compared by macro-F1 (or by cost) over all of val, which no metric of
single rows can say; of equals, the one with the shorter prompt is taken.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from dspy_reflex.errors import ReflexError
from dspy_reflex.optimize.models.ledger import Ledger, Stop
from dspy_reflex.optimize.optimizers.base import ANY_NUMBER
from dspy_reflex.optimize.search.asking import Asked, Asking
from dspy_reflex.optimize.search.candidate import Candidate
from dspy_reflex.optimize.search.chances import is_dropped, is_promising
from dspy_reflex.optimize.search.demos import in_turn

BLOCKS = 6
"""Val is asked in so many blocks; only between two of them is a candidate dropped, so threads change nothing."""
SMALLEST_BLOCK = 12
"""A block with fewer rows decides nothing."""
LATE = 3
"""Before the last third of a block's answers is waited for, the others show what comes next."""
Criterion = Callable[[Mapping[str, Any]], float]
"""Score of the predictions to rows, by row hash; higher is better, in [0, 1]."""


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
        ready: Callable[[], object] = lambda: None,
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
            ready: Returns when scoring may begin; until then others ask.
        """
        self.candidates: list[Candidate] = []
        self._valset, self._rows = in_turn(valset), {example.dspy_row for example in valset}
        self._metric, self._criterion, self._ledger, self._threads, self._say = metric, criterion, ledger, threads, say
        self._ahead, self._ready = ahead, ready
        self._by_prompt: dict[str, Candidate] = {}
        self._running: dict[str, Candidate] = {}
        self._asking = Asking(ledger, threads)
        self._lock = threading.Lock()

    def race(self, module: Any, following: Any = None) -> Candidate:
        """Score a candidate block by block, as long as it may still become the best.

        Args:
            module: The candidate.
            following: The one that is raced next, where that is known: threads with nothing else to do begin with it.
        """
        candidate = self._known(module)
        blocks = [missing for block in self._blocks() if (missing := self._missing(candidate, block))]
        if blocks and not candidate.dropped:
            with self._asked(candidate, module) as asked:
                self._race(candidate, asked, blocks, following)
        self._tell(candidate)
        return candidate

    def race_all(self, modules: Sequence[Any]) -> list[Candidate]:
        """Score several, one after another."""
        return [self.race(module, following) for module, following in zip_longest(modules, modules[1:])]

    def score(self, module: Any) -> Candidate:
        """Score a candidate on all of val, whatever it takes."""
        candidate = self._known(module)
        missing = self._missing(candidate, self._valset)
        if missing:
            with self._asked(candidate, module) as asked:
                self._begin(asked, missing)
                self._evaluate(asked, missing)
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
        if candidate.value is None:
            candidate.value = self._criterion(candidate.predictions) if candidate.predictions else 0.0
        return candidate.value

    def to_json(self, chosen: Any) -> list[dict[str, Any]]:
        """A row for each candidate, in the order in which they were met."""
        best = self._prompt(chosen)
        return [self._row(candidate, prompt == best) for prompt, candidate in self._by_prompt.items()]

    def on_evaluate_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Called by DSPy before an evaluation."""
        self._wait()
        self._asking.evaluating(1)
        with self._lock:
            if any(example.get("dspy_row") in self._rows for example in inputs.get("devset") or instance.devset):
                self._running[call_id] = self._known(inputs["program"])

    def on_evaluate_end(self, call_id: str, outputs: Any | None, exception: BaseException | None = None) -> None:
        """Called by DSPy after an evaluation."""
        self._asking.evaluating(-1)
        with self._lock:
            candidate = self._running.pop(call_id, None)
            if candidate is None:
                return
            for example, prediction, points in outputs.results if outputs is not None else ():
                if example.get("dspy_row") in self._rows:
                    # a program that is traced, as GEPA does, answers with a pair of prediction and trace
                    candidate.predictions[example.dspy_row] = prediction[0] if type(prediction) is tuple else prediction
                    candidate.points[example.dspy_row] = float(points)
            candidate.value = None
            candidate.calls, candidate.tokens = self._ledger.calls, self._ledger.tokens

    def on_adapter_parse_end(
        self, call_id: str, outputs: dict[str, Any] | None, exception: BaseException | None = None
    ) -> None:
        """Called by DSPy when an answer was read, or could not be."""
        if exception is not None:
            self._ledger.unusable()

    def _race(self, candidate: Candidate, asked: Asked, blocks: list[list[Any]], following: Any) -> None:
        """Ask block by block, and before the end of one begin with what will be asked next if nothing unlikely happens.

        That depends on the answers to certain rows, not on which of them came first: threads change nothing.
        """
        leader = self._first()
        for block, further in zip_longest(blocks, blocks[1:], fillvalue=()):
            self._begin(asked, block)
            if leader is None:
                self._begin_early(following)
            by_then = len(candidate.points) + len(block)
            for part in self._parts(block):
                if further and self._is_promising(candidate, leader, by_then):
                    asked.begin(further)
                elif candidate.points:
                    self._begin_early(following)
                self._evaluate(asked, part)
            if further and leader and is_dropped(candidate.gaps(leader), len(self._rows)):
                candidate.dropped = True
                self._begin_early(following)
                return

    def _parts(self, block: Sequence[Any]) -> Sequence[Sequence[Any]]:
        """A block, cut where one looks ahead; a run that may end in the middle of it does not look ahead."""
        late = -(-len(block) // LATE)
        return (block,) if self._ledger.has_limits else (block[:-late], block[-late:])

    def _is_promising(self, candidate: Candidate, leader: Candidate | None, by_then: int) -> bool:
        if self._ledger.has_limits:  # nothing may be paid for in vain
            return False
        if leader is None or not candidate.points:
            return leader is None
        return is_promising(candidate.gaps(leader), self._block_size, by_then, len(self._rows))

    def _wait(self) -> None:
        """Wait until scoring may begin; if it never may, not even DSPy goes on, which catches what callbacks raise."""
        try:
            self._ready()
        except ReflexError as error:
            raise Stop(error) from None

    @contextmanager
    def _asked(self, candidate: Candidate, module: Any) -> Generator[Asked]:
        self._wait()
        with self._asking.turn(module, self._prompt(module)) as asked:
            yield asked
        candidate.calls, candidate.tokens = self._asking.spent

    def _begin(self, asked: Asked, examples: Sequence[Any]) -> None:
        if self._ahead:
            self._ahead(asked.program, examples)
        asked.begin(examples)

    def _begin_early(self, module: Any) -> None:
        """Ask the first block before its turn, where it is asked in any case: under a limit it may not be."""
        if module is not None and self._threads > 1 and not self._ahead and not self._ledger.has_limits:
            prompt = self._prompt(module)
            if prompt not in self._by_prompt:
                self._asking.opened(module, prompt).begin(self._blocks()[0])

    def _evaluate(self, asked: Any, examples: Sequence[Any]) -> None:
        if examples:
            dspy.Evaluate(devset=list(examples), metric=self._metric, num_threads=1, max_errors=ANY_NUMBER)(asked)

    def _missing(self, candidate: Candidate, examples: Sequence[Any]) -> list[Any]:
        return [example for example in examples if example.dspy_row not in candidate.points]

    @property
    def _block_size(self) -> int:
        return len(self._valset) if self._ahead else max(SMALLEST_BLOCK, -(-len(self._valset) // BLOCKS))

    def _blocks(self) -> list[list[Any]]:
        size = self._block_size
        return [self._valset[start : start + size] for start in range(0, len(self._valset), size)]

    def _first(self) -> Candidate | None:
        """Whoever leads now."""
        return max(filter(self._is_finished, self.candidates), key=self._rank, default=None)

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
        if isinstance(module, Asked):
            return module.name
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
            f"candidate {candidate.number}: {self.value(candidate):.3f}, {what}{best}; {candidate.calls} calls so far"
        )
