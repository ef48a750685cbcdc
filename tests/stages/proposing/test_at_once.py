"""Two that propose at the same time file one rule for a mechanism, not two."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dspy_reflex.config import Settings
from dspy_reflex.runtime.lm.model import Message
from dspy_reflex.runtime.program import RuleProgram
from dspy_reflex.stages.proposing.drafts import Question, drafted, file_drafts
from dspy_reflex.stages.proposing.waiting import find_waiting
from dspy_reflex.store import proposals, refusals
from dspy_reflex.store.outcomes import failures_of
from dspy_reflex.store.store import Store
from tests.runtime.programs import ScriptedModel, rule_answer
from tests.stages.loop import ARTIFACT, RULE, asked, known, settings_for

OTHER = "Before any rain, take the leaves out of every gutter, and pour one bucket of water through it."


@pytest.fixture
def rules(tmp_path: Path) -> Settings:
    """Rule files in a folder of their own."""
    return settings_for(tmp_path)


@pytest.mark.parametrize("second", [RULE, OTHER], ids=["the same rule", "another rule"])
def test_of_two_that_asked_about_the_same_failures_one_files(store: Store, rules: Settings, second: str) -> None:
    """Also where they got other words. What the other one got is remembered and not asked for again."""
    known(store)
    both = threading.Barrier(2)

    def propose(rule: str) -> list[str]:
        def say(_: list[Message]) -> str:
            both.wait(30)
            return rule_answer(rule=rule)

        return [one.why for one in asked(store, rules, ScriptedModel(say)).skipped]

    with ThreadPoolExecutor(2) as pool:
        said = [why for whys in pool.map(propose, (RULE, second)) for why in whys]
    with store.read() as connection:
        (filed,) = proposals.find(connection)
        assert [one.rule for one in refusals.of_program(connection, ARTIFACT.name, "offline/1")] in ([RULE], [second])
    assert said == [f"{filed.id} is pending"]


def test_who_files_waits_for_who_does_already(store: Store, rules: Settings) -> None:
    """Else neither would see what the other is about to file."""
    known(store)
    (waiting,) = find_waiting(store, rules).waiting
    program = RuleProgram(ARTIFACT, ScriptedModel(rule_answer(rule=RULE)))
    with store.read() as connection:
        shown = tuple(failures_of(connection, [one.failure_id for one in waiting.failures]))
    drafts, _ = drafted([(Question(waiting, shown, {}), program(shown, "leak"))])

    def file() -> int:
        with store.write() as connection:
            return len(file_drafts(connection, drafts)[0])

    with ThreadPoolExecutor(1) as pool:
        with store.write() as connection:
            assert len(file_drafts(connection, drafts)[0]) == 1
            other = pool.submit(file)
            with pytest.raises(TimeoutError):
                other.result(0.3)
        assert other.result(30) == 0
