"""Who is best, and who need not be asked any further: the same with any number of threads, and never twice."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest

from dspy_reflex.errors import BudgetError, ModelUnavailableError
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.optimize.examples import examples_for
from dspy_reflex.optimize.metrics import CauseMetric, cause_criterion
from dspy_reflex.optimize.models.budget import Budget
from dspy_reflex.optimize.models.ledger import Ledger, Stop
from dspy_reflex.optimize.modules import RootCauseClassifier
from dspy_reflex.optimize.options import Cost
from dspy_reflex.optimize.search.candidate import Candidate
from dspy_reflex.optimize.search.demos import in_turn
from dspy_reflex.optimize.search.scoreboard import BLOCKS, SMALLEST_BLOCK, Scoreboard
from tests.optimize.compiles import FAILURES, labelled

dspy: Any = pytest.importorskip("dspy")

Answer = Callable[[LabelledFailure, int], str | None]
"""What a program says to a row, which is the so-manyth of its class."""


@cache
def val_rows() -> tuple[LabelledFailure, ...]:
    """Val of `datasets/failures`."""
    return labelled(FAILURES, "val")


class Log:
    """Who was asked what, by all copies of a program."""

    def __init__(self) -> None:
        self.questions: list[str] = []
        self._lock = threading.Lock()

    def __deepcopy__(self, memo: dict[int, Any]) -> Log:
        return self

    def note(self, question: str) -> None:
        """Remember a question."""
        with self._lock:
            self.questions.append(question)


class Canned(RootCauseClassifier):
    """A program that knows what it says without a model, told from others by its instructions."""

    def __init__(self, name: str, says: Mapping[str, str | None], size: int = 0) -> None:
        super().__init__()
        self.rename(f"I am {name}.{' ' * size}")
        self.says, self.asked = dict(says), Log()
        self.before: Callable[[str], None] = lambda _: None

    def rename(self, instructions: str) -> None:
        """Have other instructions."""
        predict: Any = self.predict
        predict.signature = predict.signature.with_instructions(instructions)

    def forward(self, **inputs: str) -> Any:
        """Answer by the task."""
        self.asked.note(inputs["task"])
        self.before(inputs["task"])
        said = self.says[inputs["task"]]
        if said == "stop":
            raise Stop(BudgetError("no more"))
        return dspy.Prediction(root_cause=said) if said else dspy.Prediction()


class Val:
    """A val set, a board over it, and programs that are right where they are told to be."""

    def __init__(
        self, classes: int = 6, of_each: int = 12, costs: Sequence[Cost] = (), threads: int = 1, **limits: int
    ) -> None:
        labels = sorted({str(row.root_cause) for row in val_rows()})[:classes]
        by_label = [[row for row in val_rows() if row.root_cause == label] for label in labels]
        self.rows = [row for rows in by_label for row in rows[:of_each]]
        self.labels, self.ledger = labels, Ledger(Budget(**limits))
        self.examples = examples_for("root_cause", self.rows, 0)
        metric, criterion = CauseMetric.balanced_on(self.rows, costs), cause_criterion(self.rows, costs)
        self.told: list[str] = []
        self.board = Scoreboard(self.examples, metric, criterion, self.ledger, threads, self.told.append)

    def program(self, name: str, answer: Answer, size: int = 0) -> Canned:
        """A program with such answers."""
        place: Counter[str | None] = Counter()
        says: dict[str, str | None] = {}
        for row in self.rows:
            says[row.inputs["task"]] = answer(row, place[row.root_cause])
            place[row.root_cause] += 1
        assert len(says) == len(self.rows)
        return Canned(name, says, size)

    def right(self, name: str, of_each: int, size: int = 0) -> Canned:
        """One that gets the first few of each class right, and says nothing to the others."""
        return self.program(name, lambda row, place: row.root_cause if place < of_each else None, size)

    @contextmanager
    def watched(self) -> Generator[None]:
        """The board listens, as in a compile."""
        with dspy.context(callbacks=[self.board]):
            yield

    def race(self, *programs: Canned) -> list[Candidate]:
        """Race them one after another."""
        with self.watched():
            return [self.board.race(program) for program in programs]

    def name_of(self, module: Any) -> str:
        """What a program calls itself."""
        return module.predict.signature.instructions.split()[2].rstrip(".")


def test_a_candidate_is_scored_by_the_criterion_over_all_of_val() -> None:
    """Each row once; progress is said."""
    val = Val()
    program = val.right("half", 6)
    (candidate,) = val.race(program)
    assert candidate.points.keys() == {row.row_hash for row in val.rows}
    assert sorted(program.asked.questions) == sorted(row.inputs["task"] for row in val.rows)
    assert val.board.value(candidate) == pytest.approx(2 / 3)  # F1 of half the recall at full precision
    assert candidate.mean == pytest.approx(1 / 2)
    assert val.told == ["candidate 0: 0.667, scored, best 0.667; 0 calls so far"]


def test_no_row_is_asked_twice_of_a_candidate() -> None:
    """Raced again, scored, or met as a copy: only what is missing is asked."""
    val = Val()
    leader, behind = val.right("leader", 12), val.right("behind", 1)
    first = val.race(leader, behind, leader.deepcopy(), behind.deepcopy())
    assert first[0] is first[2]
    assert first[1] is first[3]
    assert (len(leader.asked.questions), len(behind.asked.questions)) == (72, len(first[1].points))
    with val.watched():
        val.board.score(behind)
        val.board.score(leader)
    for program in (leader, behind):
        assert max(Counter(program.asked.questions).values()) == 1
        assert len(program.asked.questions) == 72
    assert len(val.board.candidates) == 2


@pytest.mark.parametrize("of_each", [2, 3, 6, 12])
def test_a_candidate_is_dropped_between_blocks_only(of_each: int) -> None:
    """A block is at least twelve rows, and a sixth of val; of each class as many as of any other."""
    val = Val(of_each=of_each)
    size = max(SMALLEST_BLOCK, 6 * of_each // BLOCKS)
    programs = [val.right("leader", of_each), *(val.right(f"p{number}", number) for number in range(of_each))]
    found = val.race(*programs)
    assert all(len(one.points) == len(val.rows) or len(one.points) % size == 0 for one in found)
    assert any(candidate.dropped for candidate in found) == (6 * of_each > size)
    for candidate in found:
        asked = Counter(row.root_cause for row in val.rows if row.row_hash in candidate.points)
        assert max(asked.values()) - min(asked.values(), default=0) <= 1


def test_one_who_lies_behind_is_dropped_and_one_who_may_still_win_is_not() -> None:
    """Whoever is ahead is asked all of val."""
    val = Val()
    worse, better = val.right("worse", 4), val.right("better", 9)
    first, second, third = val.race(worse, better, val.right("worst", 1))
    assert (first.dropped, second.dropped, third.dropped) == (False, False, True)
    assert len(third.points) < 72
    assert val.name_of(val.board.leader()) == "better"
    assert [candidate.number for candidate in val.board.finished()] == [0, 1]


def test_one_who_answers_as_the_leader_does_is_dropped_halfway() -> None:
    """It would be as good, not better."""
    val = Val()
    _, twin = val.race(val.right("leader", 8), val.right("twin", 8))
    assert (twin.dropped, len(twin.points)) == (True, 36)


def test_scored_on_all_of_val_nobody_is_dropped_any_more() -> None:
    """It may be the best by our criterion after all."""
    val = Val()
    _, dropped = val.race(val.right("leader", 12), val.right("other", 1))
    assert dropped.dropped
    with val.watched():
        assert val.board.score(val.right("other", 1)) is dropped
    assert not dropped.dropped
    assert dropped in val.board.finished()


def test_the_same_with_one_thread_and_with_eight() -> None:
    """Candidates, rows, drops and the leader."""
    found: list[Any] = []
    for threads in (1, 8):
        val = Val(threads=threads)
        programs = [val.right(f"p{number}", number) for number in (5, 3, 8, 0, 8, 12, 2)]
        candidates = val.race(*programs)
        rows = [(one.number, one.dropped, sorted(one.points.items()), val.board.value(one)) for one in candidates]
        leader = val.board.leader()
        found.append((rows, val.board.to_json(leader), val.name_of(leader), val.told))
    assert found[0] == found[1]


class Gate:
    """Holds up the answer to one question until another one was asked."""

    def __init__(self, held: str, until: str) -> None:
        self._held, self._until, self._asked = held, until, threading.Event()
        self.opened = False

    def __call__(self, task: str) -> None:
        """Called when a question is asked."""
        if task == self._until:
            self._asked.set()
        if task == self._held:
            self.opened = self._asked.wait(5.0)


def in_order(val: Val) -> list[str]:
    """The tasks of val as candidates are asked them."""
    return [example.task for example in in_turn(val.examples)]


@pytest.mark.parametrize("of_each", [4, 8])
def test_before_a_block_is_answered_the_next_one_is_begun(of_each: int) -> None:
    """No thread waits for the slowest of a block if the candidate does as well as the leader, or if nobody leads yet."""
    val = Val(threads=8)
    tasks = in_order(val)
    program = val.right("first" if of_each == 4 else "second", of_each)
    if of_each == 8:
        val.race(val.right("leader", 4))
    gates = [Gate(tasks[end - 1], tasks[end]) for end in (12, 24, 60)]

    def before(task: str) -> None:
        for gate in gates:
            gate(task)

    program.before = before
    val.race(program)
    assert [gate.opened for gate in gates] == [True] * 3


def test_one_who_is_not_as_good_in_its_first_block_is_not_asked_ahead() -> None:
    """What it would be asked might be in vain."""
    val = Val(threads=8)
    behind = val.right("behind", 1)
    _, dropped = val.race(val.right("leader", 12), behind)
    assert dropped.dropped
    assert sorted(behind.asked.questions) == sorted(in_order(val)[:12])


def test_what_was_asked_ahead_of_one_who_is_dropped_after_all_is_one_block() -> None:
    """It did as well as the leader until the last rows of a block; its points are those of the blocks it was raced on."""
    val = Val(threads=8)
    tasks = in_order(val)
    place = {task: number for number, task in enumerate(tasks)}
    late = val.program("late", lambda row, _: None if place[row.inputs["task"]] in range(20, 24) else row.root_cause)
    _, found = val.race(val.program("leader", lambda row, _: row.root_cause), late)
    assert (found.dropped, len(found.points)) == (True, 24)
    assert sorted(late.asked.questions) == sorted(tasks[:36])


def test_under_a_limit_nothing_is_asked_ahead() -> None:
    """It might be paid for in vain, and how far a run came would depend on threads."""
    val = Val(threads=8, max_calls=10_000)
    tasks = in_order(val)
    place = {task: number for number, task in enumerate(tasks)}
    late = val.program("late", lambda row, _: None if place[row.inputs["task"]] in range(20, 24) else row.root_cause)
    leader, following = val.program("leader", lambda row, _: row.root_cause), val.right("following", 2)
    with val.watched():
        val.board.race_all([leader, late, following])
    assert sorted(late.asked.questions) == sorted(tasks[:24])
    with val.watched():
        val.board.race(val.right("other", 12), never := val.right("never", 1))
    assert never.asked.questions == []


@pytest.mark.parametrize("threads", [1, 8])
def test_the_one_that_is_raced_next_is_begun_while_threads_are_idle(threads: int) -> None:
    """Its first block, which it is asked in any case; one thread has nothing to do meanwhile."""
    val = Val(threads=threads)
    tasks = in_order(val)
    if threads > 1:
        val.race(val.right("leader", 5))
    first, second = val.right("first", 6), val.right("second", 7)
    begun, seen = threading.Event(), list[bool]()

    def hold(task: str) -> None:
        if task == tasks[-1]:
            seen.append(begun.wait(5.0 if threads > 1 else 0.05))

    first.before, second.before = hold, lambda _: begun.set()
    with val.watched():
        val.board.race(first, second)
        assert seen == [threads > 1]
        assert set(second.asked.questions) <= set(tasks[:12])
        val.board.race(second)
    assert sorted(second.asked.questions) == sorted(tasks)


def test_all_of_a_list_are_asked_the_same_with_any_number_of_threads() -> None:
    """Though some are asked before their turn, and some in vain."""
    found: list[Any] = []
    for threads in (1, 3, 8):
        val = Val(threads=threads)
        programs = [val.right(f"p{number}", number) for number in (5, 3, 8, 0, 8, 12, 2, 11)]
        with val.watched():
            raced = val.board.race_all(programs)
        assert [one.number for one in raced] == [0, 1, 2, 3, 2, 4, 5, 6]
        found.append(([sorted(one.asked.questions) for one in programs], val.board.to_json(val.board.leader())))
    assert found[0] == found[1] == found[2]
    assert max(max(Counter(questions).values(), default=0) for questions in found[0][0]) == 1


def test_nobody_is_asked_before_scoring_may_begin() -> None:
    """Neither by us nor by an optimizer of DSPy's."""
    for by_us in (True, False):
        val = Val(of_each=2)
        program = val.right("one", 1)
        asked_by_then: list[int] = []

        def ready(program: Canned = program, seen: list[int] = asked_by_then) -> None:
            time.sleep(0.02)
            seen.append(len(program.asked.questions))

        vars(val.board)["_ready"] = ready
        if by_us:
            val.race(program)
        else:
            with val.watched():
                dspy.Evaluate(devset=val.examples, metric=CauseMetric(), num_threads=1)(program)
        assert asked_by_then[0] == 0


@pytest.mark.parametrize("by_us", [True, False])
def test_if_scoring_may_never_begin_nobody_is_asked(by_us: bool) -> None:
    """DSPy passes over what its callbacks raise, and would go on; a stop it does not pass over."""
    val = Val(of_each=2)
    program = val.right("one", 1)

    def never() -> None:
        raise ModelUnavailableError("nobody is there")

    vars(val.board)["_ready"] = never
    evaluate = dspy.Evaluate(devset=val.examples, metric=CauseMetric(), num_threads=1)
    with pytest.raises(Stop, match="nobody is there"), val.watched():
        (val.board.race if by_us else evaluate)(program)
    assert program.asked.questions == []
    assert val.ledger.evaluating == 0


def test_of_equals_the_one_with_the_shorter_prompt_is_taken() -> None:
    """Then the one that was met first; a better one is taken however long it is."""
    val = Val(of_each=2)  # one block: nobody is dropped
    val.race(val.right("long", 1, 50), val.right("short", 1), val.right("brief", 1), val.right("longer", 1, 90))
    assert val.name_of(val.board.leader()) == "short"
    val.race(val.right("better", 2, 500))
    assert val.name_of(val.board.leader()) == "better"


def test_the_leader_is_the_best_by_macro_f1_and_not_by_the_mean_metric() -> None:
    """One that always says the same or the other of two causes gets more rows right, and is worse."""
    val = Val(classes=3, of_each=4)
    one, two, three = val.labels
    guesses = val.program("guesses", lambda row, _: two if row.root_cause == two else one)
    honest = val.program(
        "honest", lambda row, place: row.root_cause if place < (1 if row.root_cause == three else 3) else None
    )
    first, second = val.race(guesses, honest)
    assert first.mean > second.mean
    assert val.board.value(first) < val.board.value(second)
    assert val.name_of(val.board.leader()) == "honest"


@pytest.mark.parametrize("costs", [(), "costs"])
def test_costs_change_who_is_best(costs: Any) -> None:
    """The one with more right answers, or the one whose mistakes are cheap."""
    one, two, three = Val(classes=3, of_each=4).labels
    val = Val(3, 4, [(one, two, 8.0)] if costs else [])
    costly = val.program("costly", lambda row, place: two if row.root_cause == one and place < 2 else row.root_cause)
    cheap = val.program("cheap", lambda row, place: three if row.root_cause == one and place < 3 else row.root_cause)
    val.race(costly, cheap)
    assert val.name_of(val.board.leader()) == ("cheap" if costs else "costly")


def test_it_hears_of_every_evaluation_of_an_optimizer_of_dspys() -> None:
    """On parts of val; evaluations on other rows are none of its business."""
    val = Val(of_each=2)
    program = val.right("theirs", 1)
    strangers = [dspy.Example(one).copy(dspy_row=f"other-{place}") for place, one in enumerate(val.examples)]
    metric = CauseMetric()
    with val.watched():
        for part in (val.examples[:5], [one.with_inputs(*val.examples[0].inputs()) for one in strangers]):
            dspy.Evaluate(devset=part, metric=metric, num_threads=1)(program)
    (candidate,) = val.board.candidates
    assert candidate.points.keys() == {one.dspy_row for one in val.examples[:5]}
    assert val.board.finished() == []
    with val.watched():
        assert val.board.race(program) is candidate
    assert candidate in val.board.finished()
    assert len(program.asked.questions) == 12 + 12


@pytest.mark.parametrize("threads", [1, 8])
def test_when_nobody_may_be_asked_any_more_the_board_is_whole(threads: int) -> None:
    """Nothing is scored that was not answered, no evaluation goes on, and the leader is known."""
    val = Val(threads=threads)
    val.race(val.right("leader", 6))
    stops = val.program("stops", lambda row, place: row.root_cause if place < 4 else "stop")
    with pytest.raises(Stop, match="no more"):
        val.race(stops)
    assert val.ledger.evaluating == 0
    assert val.board.candidates[1].points.keys() <= {row.row_hash for row in val.rows}
    assert set(val.board.candidates[1].points.values()) <= {1.0}
    assert val.name_of(val.board.leader()) == "leader"
    assert [row["best"] for row in val.board.to_json(val.board.leader())] == [True, False]


def test_one_who_was_stopped_before_its_first_answer_has_a_score_of_0() -> None:
    """It can be told of like the others."""
    val = Val()
    with pytest.raises(Stop):
        val.race(val.program("stops", lambda row, place: "stop"))
    (row,) = val.board.to_json(RootCauseClassifier())
    assert (row["score"], row["rows"], row["best"]) == (0.0, 0, False)


def test_without_candidates_the_leader_is_the_program_itself() -> None:
    """As with optimizers that score nothing; it is not among the finished ones when it is asked about."""
    val, plain = Val(of_each=2), RootCauseClassifier()
    assert val.board.leader(plain) is plain
    only = val.right("only", 2)
    val.race(only)
    assert val.board.leader(only) is only
    assert val.board.finished(but=only) == []
    assert val.name_of(val.board.leader(plain)) == "only"


def test_a_candidate_is_kept_as_it_was_when_it_was_met() -> None:
    """An optimizer may go on changing its module."""
    val = Val(of_each=2)
    program = val.right("first", 2)
    val.race(program)
    program.rename("I am changed.")
    assert val.name_of(val.board.leader()) == "first"
    assert val.board.candidates[0].prompt_chars == len("I am first.")


def test_a_row_of_the_table_says_what_a_candidate_cost() -> None:
    """Calls and tokens are those of the whole compile by then."""
    val = Val(of_each=2)
    program = val.right("one", 1)
    program.predict.demos = [dspy.Example(task="t" * 100, root_cause="c" * 40, dspy_id="")]
    val.race(program)
    assert val.board.to_json(program) == [
        {"candidate": 0, "score": 0.6667, "rows": 12, "dropped": False, "calls": 0, "tokens": 0,
         "prompt_tokens": (len("I am one.") + 140) // 4, "demos": 1, "best": True}
    ]  # fmt: skip
