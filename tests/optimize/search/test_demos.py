"""Demos of every class: the questions that DSPy's own optimizer asks, several at a time."""

from __future__ import annotations

import contextlib
import io
import random
import threading
import time
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.errors import BudgetError
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.optimize.examples import examples_for
from dspy_reflex.optimize.metrics import CauseMetric
from dspy_reflex.optimize.models.dspy_lm import ReflexLM
from dspy_reflex.optimize.models.journal import Journal
from dspy_reflex.optimize.models.journaled import JournaledModel
from dspy_reflex.optimize.models.ledger import Ledger, Stop
from dspy_reflex.optimize.modules import RootCauseClassifier
from dspy_reflex.optimize.optimizers.base import Setting
from dspy_reflex.optimize.publish import adapter
from dspy_reflex.optimize.search.demos import balancing, bootstrapped, demo_sets, in_parallel, in_turn, with_demos
from dspy_reflex.optimize.search.scoreboard import Scoreboard
from dspy_reflex.runtime.lm.model import PLAIN, Completion, Message, Sampling
from tests.optimize.compiles import FAILURES, labelled
from tests.optimize.thinking import says

dspy: Any = pytest.importorskip("dspy")

ROWS = 24
CLASSES = st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=30)


@cache
def rows() -> tuple[LabelledFailure, ...]:
    """Some rows of all six causes, as many of each."""
    found: dict[str | None, list[LabelledFailure]] = {}
    for row in labelled(FAILURES, "val"):
        found.setdefault(row.root_cause, []).append(row)
    return tuple(row for some in found.values() for row in some[: ROWS // len(found)])


class Knows:
    """A model that knows the causes of some rows, and remembers what it was asked."""

    name = "fake/knows"

    def __init__(self, known: Collection[int], unreadable: Collection[int] = ()) -> None:
        self.asked: list[str] = []
        self._known, self._unreadable, self._lock = known, unreadable, threading.Lock()

    def complete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """Name the cause, or another one."""
        with self._lock:
            self.asked.append("\n".join(f"{each['role']}: {each['content']}" for each in messages))
        place, row = next((n, r) for n, r in enumerate(rows()) if r.inputs["task"] in messages[-1]["content"])
        if place in self._unreadable:
            return Completion("I would rather not.")
        others = sorted({str(other.root_cause) for other in rows()} - {str(row.root_cause)})
        return Completion(says(str(row.root_cause) if place in self._known else others[0]).text)

    async def acomplete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """The same."""
        return self.complete(messages, sampling)


def trainset() -> list[Any]:
    """The rows as a compile has them; `place` of each is its place in `rows`."""
    return examples_for("root_cause", rows(), 0)


def setting(model: Knows, threads: int = 1, seed: int = 0) -> Setting:
    """A compile on these rows; every question is asked anew, for each journal is empty."""
    examples, metric = in_turn(trainset()), CauseMetric()
    lm = ReflexLM(JournaledModel(model, "task", Journal(), Ledger(), {}))
    board = Scoreboard(examples, metric, lambda _: 0.0, Ledger(), threads)
    return Setting(metric, examples, examples, lm, lm, None, seed, threads, 10, board)


def under(chosen: Setting) -> Any:
    """The context that a compile runs in."""
    return dspy.context(lm=chosen.task_lm, adapter=adapter())


def worked_out(demos: Sequence[Any]) -> list[Any]:
    """Those that the teacher worked out."""
    return [demo for demo in demos if demo.get("augmented")]


@pytest.mark.parametrize(("seed", "share", "wanted"), [(0, 0.5, 4), (1, 0.2, 4), (2, 0.9, 6), (3, 0.0, 3), (4, 1.0, 1)])
def test_it_asks_what_dspys_own_bootstrap_would_ask_and_finds_the_same_demos(
    seed: int, share: float, wanted: int
) -> None:
    """Whatever the teacher gets right: no question more, none less, and the same answers become demos."""
    rng = random.Random(seed)
    known = [place for place in range(ROWS) if rng.random() < share]
    student, theirs, ours = RootCauseClassifier(), Knows(known), Knows(known)
    serial, waves = setting(theirs), setting(ours, threads=8)
    with under(serial), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        teacher = dspy.LabeledFewShot(k=8).compile(student, trainset=serial.trainset, sample=False)
        optimizer = dspy.BootstrapFewShot(metric=serial.metric, max_bootstrapped_demos=wanted, max_labeled_demos=8)
        expected = optimizer.compile(student, teacher=teacher, trainset=serial.trainset)
    with under(waves):
        found = bootstrapped(student, waves, waves.trainset, wanted, 8)
    assert Counter(ours.asked) == Counter(theirs.asked)
    assert worked_out(found.predict.demos) == worked_out(expected.predict.demos)
    assert len(found.predict.demos) == len(expected.predict.demos) == 8


@pytest.mark.parametrize("threads", [1, 8])
def test_an_answer_that_cannot_be_read_is_no_demo_and_changes_no_other_question(threads: int) -> None:
    """DSPy's own bootstrap forgets to give the teacher its demo of that row back."""
    asked: list[Counter[str]] = []
    for unreadable in ([], range(0, ROWS, 5)):
        model = Knows([place for place in range(ROWS) if place % 5], unreadable)
        chosen = setting(model, threads)
        with under(chosen):
            demos = bootstrapped(RootCauseClassifier(), chosen, chosen.trainset, 12, 12).predict.demos
        assert len(worked_out(demos)) == 12
        asked.append(Counter(model.asked))
    assert asked[0] == asked[1]


def test_a_teacher_is_not_shown_the_answer_to_what_it_is_asked() -> None:
    """The row it works out is none of its own demos."""
    model = Knows(range(ROWS))
    chosen = setting(model)
    with under(chosen):
        bootstrapped(RootCauseClassifier(), chosen, chosen.trainset, 4, 8)
    assert len(model.asked) == 4
    for asked, example in zip(model.asked, chosen.trainset, strict=False):
        assert asked.count(example.task) == 1


def test_every_class_has_as_many_demos_as_any_other() -> None:
    """Those that were worked out count; here only rows of one class can be."""
    cause = rows()[0].root_cause
    model = Knows([place for place, row in enumerate(rows()) if row.root_cause == cause])
    chosen = setting(model)
    with under(chosen):
        demos = bootstrapped(RootCauseClassifier(), chosen, chosen.trainset, 2, 12).predict.demos
    assert [demo.root_cause for demo in worked_out(demos)] == [cause, cause]
    assert set(Counter(demo.root_cause for demo in demos).values()) == {2}


@given(CLASSES, CLASSES, st.integers(0, 12))
def test_balancing_takes_of_the_class_that_has_fewest(have: list[str], pool: list[str], room: int) -> None:
    """As long as there are any; nothing twice, the first ones of each class, and no more than there is room for."""
    examples = [dspy.Example(root_cause=cause, place=place) for place, cause in enumerate(pool)]
    chosen = balancing([dspy.Example(root_cause=cause) for cause in have], examples, room)
    assert len(chosen) == min(room, len(pool))
    for cause in set(pool):
        places = [one.place for one in chosen if one.root_cause == cause]
        assert places == [one.place for one in examples if one.root_cause == cause][: len(places)]
    count, left = Counter(have), Counter(pool)
    for one in chosen:
        assert count[one.root_cause] == min(count[cause] for cause in left if left[cause])
        count[one.root_cause] += 1
        left[one.root_cause] -= 1


@given(CLASSES)
def test_every_beginning_has_some_of_each_class(causes: list[str]) -> None:
    """All examples, each once; a class is left out of a turn only when it is used up."""
    examples = [dspy.Example(root_cause=cause, place=place) for place, cause in enumerate(causes)]
    found = in_turn(examples)
    assert sorted(one.place for one in found) == list(range(len(causes)))
    total = Counter(causes)
    for stop in range(len(found) + 1):
        seen = Counter(one.root_cause for one in found[:stop])
        most = max(seen.values(), default=0)
        assert all(seen[cause] >= min(total[cause], most - 1) for cause in total)


def test_demo_sets_are_labelled_rows_first_and_then_worked_ones_of_several_sizes() -> None:
    """As many as asked for, none too large, every class in each."""
    chosen = setting(Knows(range(ROWS)), threads=4)
    with under(chosen):
        sets = demo_sets(RootCauseClassifier(), chosen, 6, 4, 8)
    sizes = [len(worked_out(demos)) for demos in sets]
    assert (len(sets), sizes[:2]) == (6, [0, 4])
    assert all(1 <= size <= 4 for size in sizes[2:])
    assert len({repr(demos) for demos in sets}) == 6
    for demos in sets:
        assert len(demos) == 8
        assert max(Counter(demo.root_cause for demo in demos).values()) <= 2


def test_demo_sets_are_the_same_with_any_number_of_threads_and_others_with_another_seed() -> None:
    """Sets beyond the first two are drawn by the seed."""
    found: list[Any] = []
    for threads, seed in ((1, 0), (8, 0), (1, 1)):
        model = Knows(range(0, ROWS, 2))
        chosen = setting(model, threads, seed)
        with under(chosen):
            found.append((demo_sets(RootCauseClassifier(), chosen, 5, 4, 8), Counter(model.asked)))
    assert found[0] == found[1]
    assert found[0][0][:2] == found[2][0][:2]
    assert found[0][0][2:] != found[2][0][2:]


def test_no_worked_demos_means_no_question() -> None:
    """Labelled rows alone."""
    model = Knows(range(ROWS))
    chosen = setting(model)
    with under(chosen):
        sets = demo_sets(RootCauseClassifier(), chosen, 4, 0, 8)
    assert [len(demos) for demos in sets] == [8] * 4
    assert not any(worked_out(demos) for demos in sets)
    assert model.asked == []


def test_a_program_with_demos_is_another_one() -> None:
    """The one it was made from stays as it is."""
    student: Any = RootCauseClassifier()
    before = student.predict.signature.instructions
    made = with_demos(student, [dspy.Example(task="t")], "Guess.")
    assert (student.predict.demos, student.predict.signature.instructions) == ([], before)
    assert (len(made.predict.demos), made.predict.signature.instructions) == (1, "Guess.")
    assert with_demos(student, []).predict.signature.instructions == before


def test_work_in_parallel_comes_back_in_order_and_knows_dspys_settings() -> None:
    """However long each takes."""
    pause = [random.Random(7).random() / 100 for _ in range(40)]

    def one(number: int) -> tuple[int, Any]:
        time.sleep(pause[number])
        return number, dspy.settings.adapter

    mine = adapter()
    with dspy.context(adapter=mine):
        assert in_parallel(one, range(40), 8) == [(number, mine) for number in range(40)]
    assert in_parallel(one, [], 8) == []


def test_what_stops_one_of_many_stops_all() -> None:
    """And is passed on as it is."""

    def one(number: int) -> int:
        if number == 5:
            raise Stop(BudgetError("no more"))
        return number

    with pytest.raises(Stop, match="no more"):
        in_parallel(one, range(20), 4)


def test_after_ctrl_c_nothing_new_is_begun() -> None:
    """What waits in a long list of work costs money."""
    begun: list[int] = []

    def one(number: int) -> None:
        begun.append(number)
        if number == 0:
            raise KeyboardInterrupt
        time.sleep(0.05)

    with pytest.raises(KeyboardInterrupt):
        in_parallel(one, range(100), 2)
    time.sleep(0.2)
    assert len(begun) <= 4
