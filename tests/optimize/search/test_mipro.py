"""MIPROv2's search: what the prompt model is asked, which pairs are tried, and what is found."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from dspy_reflex.optimize.examples import examples_for
from dspy_reflex.optimize.metrics import CauseMetric, cause_criterion
from dspy_reflex.optimize.models.dspy_lm import ReflexLM
from dspy_reflex.optimize.models.journal import Journal
from dspy_reflex.optimize.models.journaled import JournaledModel
from dspy_reflex.optimize.models.ledger import Ledger
from dspy_reflex.optimize.modules import RootCauseClassifier
from dspy_reflex.optimize.optimizers.base import Setting
from dspy_reflex.optimize.optimizers.miprov2 import CALLS_PER_INSTRUCTION, SUMMARY_CALLS, MiproOptions
from dspy_reflex.optimize.publish import adapter
from dspy_reflex.optimize.search.demos import in_turn
from dspy_reflex.optimize.search.mipro import SHOWN_DEMOS, compile_mipro
from dspy_reflex.optimize.search.scoreboard import Scoreboard
from dspy_reflex.runtime.lm.model import PLAIN, Completion, Message, Sampling
from tests.optimize.compiles import labelled, small_set
from tests.optimize.thinking import says

dspy: Any = pytest.importorskip("dspy")

Suits = Callable[[str, int, int], bool]
"""Whether a task model is right: by the system text, the number of demos, and the number of the row asked about."""
FIELDS = ("observations", "summary", "proposed_instruction")
Chat = list[Message]


class Writes:
    """A prompt model that writes another instruction each time, unless it writes what nobody can read."""

    name = "fake/writes"

    def __init__(self, unreadable: tuple[str, ...] = ()) -> None:
        self.asked: list[tuple[str, str]] = []
        self._unreadable, self._lock = unreadable, threading.Lock()

    def complete(self, messages: Chat, sampling: Sampling = PLAIN) -> Completion:
        """Fill in the field asked for."""
        field = next(name for name in FIELDS if f"`{name}`" in messages[0]["content"].partition("output fields")[2])
        with self._lock:
            self.asked.append((field, messages[-1]["content"]))
        if field in self._unreadable:
            return Completion("Let me think about it.")
        return Completion(f"[[ ## {field} ## ]]\nSay number {sampling.seed} of {field}.\n\n[[ ## completed ## ]]")

    async def acomplete(self, messages: Chat, sampling: Sampling = PLAIN) -> Completion:
        """The same."""
        return self.complete(messages, sampling)


class Follows:
    """A task model that is right when what it is told suits it."""

    name = "fake/follows"

    def __init__(self, gold: dict[str, str], suits: Suits) -> None:
        self._gold, self._suits = gold, suits

    def complete(self, messages: Chat, sampling: Sampling = PLAIN) -> Completion:
        """The right cause, or the first one."""
        rows = enumerate(self._gold.items())
        place, gold = next((place, cause) for place, (task, cause) in rows if task in messages[-1]["content"])
        right = self._suits(messages[0]["content"], len(messages) // 2 - 1, place)
        return Completion(says(gold if right else min(self._gold.values())).text)

    async def acomplete(self, messages: Chat, sampling: Sampling = PLAIN) -> Completion:
        """The same."""
        return self.complete(messages, sampling)


class Run:
    """One search on the small set."""

    def __init__(
        self,
        rows: tuple[list[Any], list[Any]],
        options: MiproOptions,
        *,
        prompt: Writes | None = None,
        suits: Suits = lambda system, demos, row: True,
        threads: int = 1,
        seed: int = 0,
    ) -> None:
        train, val = rows
        self.prompt, ledger, journal = prompt or Writes(), Ledger(), Journal()
        gold = {example.task: example.root_cause for example in (*train, *val)}
        task_lm = ReflexLM(JournaledModel(Follows(gold, suits), "task", journal, ledger, {"who": "task"}))
        prompt_lm = ReflexLM(JournaledModel(self.prompt, "prompt", journal, ledger, {"who": "prompt"}))
        metric = CauseMetric()
        self.board = Scoreboard(val, metric, cause_criterion([one.labelled for one in val]), ledger, threads)
        setting = Setting(metric, in_turn(train), val, task_lm, prompt_lm, None, seed, threads, 10, self.board)
        self.student: Any = RootCauseClassifier()
        with dspy.context(lm=task_lm, adapter=adapter(), callbacks=[self.board]):
            self.found = compile_mipro(self.student, setting, options)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Instructions and demos of what was tried, in order."""
        found = [candidate.module.predict for candidate in self.board.candidates]
        return [(one.signature.instructions, repr([demo.toDict() for demo in one.demos])) for one in found]


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Any], list[Any]]:
    """Examples to learn from and to choose on."""
    folder = small_set(tmp_path_factory.mktemp("mipro") / "small")
    found: list[list[Any]] = []
    for split, number in (("train", 24), ("val", 12)):
        some = labelled(folder, split)[:number]
        by_hash = {row.row_hash: row for row in some}
        examples = examples_for("root_cause", some, 0)
        found.append([example.copy(labelled=by_hash[example.dspy_row]) for example in examples])
    return found[0], found[1]


def test_every_pair_is_tried_once_and_the_uncompiled_program_first(rows: Any) -> None:
    """With more trials than pairs, the search ends when all are tried."""
    run = Run(rows, MiproOptions(max_demos=6, max_bootstrapped=2, candidates=3, trials=50))
    assert len(run.pairs) == len(set(run.pairs)) == 3 * 3
    assert len({instructions for instructions, _ in run.pairs}) == len({demos for _, demos in run.pairs}) == 3
    assert run.pairs[0] == (run.student.predict.signature.instructions, "[]")


def test_the_first_trials_have_every_instruction_and_every_demo_set(rows: Any) -> None:
    """A Latin square, so that the search knows something about each; then no more than there are trials."""
    run = Run(rows, MiproOptions(max_demos=6, max_bootstrapped=2, candidates=4, trials=7))
    assert len(run.pairs) == len(set(run.pairs)) == 7
    assert len({instructions for instructions, _ in run.pairs[:4]}) == len({demos for _, demos in run.pairs[:4]}) == 4


@pytest.mark.parametrize("seed", [0, 5])
def test_it_finds_the_pair_that_suits_the_model(seed: int, rows: Any) -> None:
    """Some instructions help with every other row, demos with the others; a third of the pairs is tried."""

    def suits(system: str, demos: int, row: int) -> bool:
        return bool(re.search(r"Say number \d*[0246] of proposed", system)) if row % 2 else demos > 0

    run = Run(rows, MiproOptions(max_demos=6, max_bootstrapped=2, candidates=6, trials=12), suits=suits, seed=seed)
    assert run.board.best == 1.0
    assert all(suits(run.found.predict.signature.instructions, len(run.found.predict.demos), row) for row in (0, 1))
    assert run.board.value(run.board.candidates[0]) < 0.5


def test_the_search_is_the_same_with_any_number_of_threads(rows: Any) -> None:
    """Questions to the prompt model, pairs, scores; another seed has others."""
    options = MiproOptions(max_demos=6, max_bootstrapped=2, candidates=4, trials=6)

    def suits(system: str, demos: int, row: int) -> bool:
        return (len(system) + row) % 3 == 0 or demos > row % 7

    one, eight, other = (
        Run(rows, options, suits=suits, threads=threads, seed=seed) for threads, seed in ((1, 0), (8, 0), (1, 5))
    )
    assert Counter(one.prompt.asked) == Counter(eight.prompt.asked) != Counter(other.prompt.asked)
    assert one.pairs == eight.pairs != other.pairs
    assert one.board.to_json(one.found) == eight.board.to_json(eight.found)


def test_the_prompt_model_is_asked_no_more_than_the_estimate_says(rows: Any) -> None:
    """The data summary once, though two ask for it; each instruction once."""
    run = Run(rows, MiproOptions(max_demos=6, max_bootstrapped=2, candidates=5, trials=1))
    asked = Counter(field for field, _ in run.prompt.asked)
    assert asked["proposed_instruction"] == 4
    assert asked["summary"] == 1
    assert asked["observations"] + asked["summary"] <= SUMMARY_CALLS
    assert sum(asked.values()) <= SUMMARY_CALLS + CALLS_PER_INSTRUCTION * 5
    assert max(Counter(run.prompt.asked).values()) == 1


def test_the_prompt_model_is_shown_rows_and_worked_demos(rows: Any) -> None:
    """And the data summary; not the program's source."""
    run = Run(rows, MiproOptions(max_demos=6, max_bootstrapped=2, candidates=4, trials=1))
    questions = [question for field, question in run.prompt.asked if field == "proposed_instruction"]
    tasks = [example.task for example in rows[0]]
    assert any(task in question for question in questions for task in tasks)
    assert all("of summary" in question for question in questions)
    assert not any("self.predict" in question for question in questions)


def test_without_demos_the_instructions_alone_are_searched(rows: Any) -> None:
    """The prompt model is shown worked demos all the same."""
    run = Run(rows, MiproOptions(max_demos=0, candidates=4, trials=20))
    assert {demos for _, demos in run.pairs} == {"[]"}
    assert len(run.pairs) == 4
    questions = "".join(question for field, question in run.prompt.asked if field == "proposed_instruction")
    assert SHOWN_DEMOS > 0
    assert any(example.task in questions for example in rows[0])


@pytest.mark.parametrize("unreadable", [("summary",), ("observations",), ("proposed_instruction",), FIELDS])
def test_what_the_prompt_model_writes_unreadably_is_left_out(unreadable: tuple[str, ...], rows: Any) -> None:
    """The search goes on with the instructions there are."""
    options = MiproOptions(max_demos=6, max_bootstrapped=2, candidates=3, trials=9)
    run = Run(rows, options, prompt=Writes(unreadable), suits=lambda system, demos, row: demos > 0)
    instructions = {instructions for instructions, _ in run.pairs}
    assert len(instructions) == (1 if "proposed_instruction" in unreadable else 3)
    assert run.found.predict.demos
