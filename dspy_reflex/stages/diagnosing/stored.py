"""Failures of the store in, diagnoses into the store: a batch at a time, each question once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from dspy_reflex.config import Settings
from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.records.outcome import LoggedFailure
from dspy_reflex.records.record import Severity
from dspy_reflex.runtime.program import CauseProgram
from dspy_reflex.stages.asking.batch import Batch, Reason, run_batch
from dspy_reflex.stages.asking.money import meter_of_today, spend
from dspy_reflex.stages.diagnosing.repeats import as_repeat, question_of
from dspy_reflex.store import diagnoses
from dspy_reflex.store.diagnoses import Diagnosed
from dspy_reflex.store.store import Store

PAGE = 1000
"""Failures read at a time."""
QUESTIONS = 50
"""Questions between two transactions: what a kill can lose."""
Groups = dict[str, list[LoggedFailure]]
Tick = Callable[[int], None]


@dataclass(frozen=True)
class Wanted:
    """Which failures, of those without a diagnosis by this version of the program, are to get one."""

    since: datetime | None = None
    agents: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Made:
    """A diagnosis that is in the store now."""

    severity: Severity
    agent_id: str
    diagnosis: Diagnosis
    again: bool
    """Whether a fall-back made it, so that it is to be made again."""


@dataclass(frozen=True)
class Stored:
    """What was done, and why it ended if something is left."""

    made: tuple[Made, ...] = ()
    calls: int = 0
    """Questions that were asked; failures that repeat each other are one."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0
    """None if the model's price is not known."""
    stopped: str = ""
    """Why failures are left, in a sentence; empty if none are."""
    reason: Reason = ""
    """The kind of `stopped`."""
    warning: str = ""
    """What is wrong with running the program on its model; empty if nothing."""

    def then(self, other: Stored) -> Stored:
        """Both, with the end of the second."""
        known = self.cost_usd is not None and other.cost_usd is not None
        return replace(
            other,
            made=self.made + other.made,
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=(self.cost_usd or 0) + (other.cost_usd or 0) if known else None,
            warning=self.warning or other.warning,
        )


def diagnose_stored(
    store: Store,
    settings: Settings,
    program: CauseProgram,
    wanted: Wanted,
    *,
    fallback: Callable[[], CauseProgram] | None = None,
    max_usd: float | None = None,
    concurrency: int = 1,
    tick: Tick = lambda _: None,
) -> Stored:
    """Diagnose what this version of the program has not diagnosed yet.

    An outage, a spent budget or an interrupt ends it early; what was answered is in the store, the rest stays queued.

    Args:
        store: Where failures are and diagnoses go.
        settings: How much may be spent in a day.
        program: Who is asked.
        wanted: Which failures.
        fallback: Gives the program to ask while the first one's model is out of reach. What it says is marked, and said
            again later by the first.
        max_usd: Most that this may cost.
        concurrency: Questions at a time.
        tick: Told how many diagnoses were made so far.

    Raises:
        ConfigError: There is a limit to what it may cost, and the model's price is not known.
    """
    first = _Run(store, settings, program, max_usd, concurrency, tick).over(_pages(store, wanted, program))
    if first.reason != "outage" or fallback is None:
        return first
    other = fallback()
    left = _pages(store, wanted, program, besides=other.artifact.name)
    run = _Run(store, settings, other, max_usd, concurrency, lambda n: tick(len(first.made) + n), again=True)
    second = run.over(left)
    return first.then(second if second.stopped else replace(second, stopped="", reason=""))


def _pages(
    store: Store, wanted: Wanted, program: CauseProgram, *, besides: str | None = None
) -> Generator[list[LoggedFailure]]:
    """Failures without a diagnosis, page by page, each failure once."""
    last = None
    while True:
        with store.read() as connection:
            page = diagnoses.undiagnosed(
                connection, program.artifact.name, since=wanted.since, agents=wanted.agents, besides=besides, after=last,
                limit=PAGE,
            )  # fmt: skip
        if not page:
            return
        yield page
        last = page[-1]


@dataclass
class _Run:
    """One program at work."""

    store: Store
    settings: Settings
    program: CauseProgram
    max_usd: float | None
    concurrency: int
    tick: Tick
    again: bool = False
    made: list[Made] = field(default_factory=list[Made])
    total: Stored = Stored()

    def over(self, pages: Generator[list[LoggedFailure]]) -> Stored:
        for page in pages:
            self._page(page)
            if self.total.stopped:
                break
        return replace(self.total, made=tuple(self.made), warning=self.program.warning)

    def _page(self, page: Sequence[LoggedFailure]) -> None:
        groups: Groups = {}
        for failure in page:
            groups.setdefault(question_of(failure), []).append(failure)
        with self.store.read() as connection:
            known = diagnoses.answers(connection, self.program.artifact.name, list(groups))
        repeats = [
            Diagnosed(one, as_repeat(said, one), asked) for asked, said in known.items() for one in groups[asked]
        ]
        self._write(repeats)
        new = [asked for asked in groups if asked not in known]
        for start in range(0, len(new), QUESTIONS):
            if self.total.stopped:
                return
            self._ask(new[start : start + QUESTIONS], groups)

    def _ask(self, questions: Sequence[str], groups: Groups) -> None:
        meter = meter_of_today(self.store, self.settings, self.program.model.name, self._left_usd())
        firsts = [groups[asked][0] for asked in questions]
        batch = run_batch(firsts, self.program.explained, meter=meter, concurrency=self.concurrency)
        found: list[Diagnosed] = []
        for place, said in zip(batch.answered, batch.done, strict=True):
            asked = questions[place]
            first, *others = groups[asked]
            found.append(Diagnosed(first, said, asked))
            found += [Diagnosed(one, as_repeat(said, one), asked) for one in others]
        self._write(found, batch)
        self.total = self.total.then(
            Stored(
                (), batch.calls, batch.input_tokens, batch.output_tokens, batch.cost_usd, batch.stopped, batch.reason
            )
        )

    def _write(self, found: Sequence[Diagnosed], batch: Batch[Diagnosis] | None = None) -> None:
        if not found and not (batch and batch.calls):
            return
        with self.store.write() as connection:
            diagnoses.add(connection, found, again=self.again)
            if batch:
                spend(connection, self.program.model.name, batch)
        self.made += [Made(one.failure.severity, one.failure.agent_id, one.diagnosis, self.again) for one in found]
        self.tick(len(self.made))

    def _left_usd(self) -> float | None:
        return None if self.max_usd is None else max(0.0, self.max_usd - (self.total.cost_usd or 0.0))
