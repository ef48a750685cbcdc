"""One worker at a time: what becomes of a trial, whatever happens to it."""

from __future__ import annotations

import time

import pytest

from dspy_reflex.errors import CompileError, ModelUnavailableError
from dspy_reflex.optimize.tune import storage as storage_module
from dspy_reflex.optimize.tune.attempt import Attempt, Found, Say
from dspy_reflex.optimize.tune.space import Point
from tests.optimize.tune.studies import ONE, Study, first_then, pretended


def failing(error: BaseException) -> Attempt:
    """A compile that ends like this."""

    def attempt(point: Point, run: str, say: Say) -> Found:
        raise error

    return attempt


def test_every_trial_is_run_once_and_the_front_is_what_no_other_beats(journal: str) -> None:
    """Complete, all of them; a second worker finds nothing to do."""
    study = Study(journal, 12)
    study.worker().work()
    found = study.outcome
    assert found.counts["complete"] == sum(found.counts.values()) == 12
    scores = {(one.score or 0, one.tokens_per_call or 0) for one in found.tried}
    beaten = {
        (score, tokens)
        for score, tokens in scores
        if any(other >= score and less <= tokens for other, less in scores - {(score, tokens)})
    }
    assert {(one.score, one.tokens_per_call) for one in found.best} == scores - beaten
    assert len(found.best) > 1
    study.worker(failing(AssertionError("nothing is left to do"))).work()
    assert study.outcome == found


def test_the_same_choices_are_not_compiled_twice(journal: str) -> None:
    """There are four of them, and ten trials."""
    study, runs = Study(journal, 10, ONE), list[str]()

    def attempt(point: Point, run: str, say: Say) -> Found:
        runs.append(run)
        return pretended(point, run, say)

    study.worker(attempt).work()
    tried = study.outcome.tried
    assert len(runs) == len({str(one.choices) for one in tried}) == 4
    copies = [one for one in tried if one.same_as is not None]
    assert len(copies) == 6
    for one in copies:
        first = tried[one.same_as or 0]
        assert (one.score, one.tokens_per_call, one.run, one.choices) == (
            first.score,
            first.tokens_per_call,
            first.run,
            first.choices,
        )
    assert not {one.number for one in copies} & {*study.outcome.front}


def test_settings_that_come_to_nothing_are_pruned_with_the_reason(journal: str) -> None:
    """Never a score of 0."""
    study = Study(journal, 3)
    study.worker(first_then(failing(CompileError("it changed nothing")))).work()
    first, *others = study.outcome.tried
    assert (first.state, first.score, first.reason) == ("pruned", None, "it changed nothing")
    assert [one.state for one in others] == ["complete", "complete"]


def test_an_error_that_nobody_foresaw_fails_one_trial_and_is_named(journal: str) -> None:
    """The others are run all the same."""
    study = Study(journal, 3)
    study.worker(first_then(failing(ZeroDivisionError("oh")))).work()
    first, *others = study.outcome.tried
    assert (first.state, first.score, first.reason) == ("failed", None, "ZeroDivisionError: oh")
    assert [one.state for one in others] == ["complete", "complete"]


@pytest.mark.parametrize("error", [ModelUnavailableError("out"), KeyboardInterrupt(), OSError("disk full")])
def test_what_would_end_every_trial_ends_the_worker_and_costs_no_trial(storage: str, error: BaseException) -> None:
    """The trial is queued again with the same choices, and in the same folder."""
    study, runs = Study(storage, 3), list[str]()
    with pytest.raises(type(error)):
        study.worker(failing(error)).work()
    assert study.outcome.counts["retried"] == study.outcome.counts["waiting"] == 1

    def attempt(point: Point, run: str, say: Say) -> Found:
        runs.append(run)
        return pretended(point, run, say)

    study.worker(attempt).work()
    first, again, *others = study.outcome.tried
    assert (first.state, again.state, again.again, again.choices) == ("retried", "complete", 0, first.choices)
    assert sorted(runs) == ["trial-0", "trial-2", "trial-3"]
    assert [one.state for one in others] == ["complete", "complete"]


def test_a_worker_that_died_before_its_first_sign_of_life_is_noticed(
    storage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has to wait for ever for the trial that it had reached for."""
    monkeypatch.setattr(storage_module, "MISSED", 1)
    study = Study(storage, 2)
    study.storage.create_new_trial(study.study._study_id)  # pyright: ignore[reportPrivateUsage]
    study.worker().work()
    assert [one.state for one in study.outcome.tried] == ["retried", "complete", "complete"]
    assert study.outcome.tried[2].again == 0
    assert "waiting for trial 0 of other workers" in study.said


def test_so_is_one_that_died_on_a_trial_that_was_run_again(storage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It carries the attributes of the worker before."""
    monkeypatch.setattr(storage_module, "MISSED", 1)
    study = Study(storage, 1)
    with pytest.raises(ModelUnavailableError):
        study.worker(failing(ModelUnavailableError("out"))).work()
    study.study._pop_waiting_trial_id()  # pyright: ignore[reportPrivateUsage]
    study.worker().work()
    assert [one.state for one in study.outcome.tried] == ["retried", "retried", "complete"]
    assert study.outcome.tried[2].again == 0


def test_a_worker_with_fewer_trials_in_its_command_harms_no_other(journal: str) -> None:
    """It may run another one's trial again, and does not take it for one too many."""
    large, turns = Study(journal, 3), iter([pretended, pretended])
    with pytest.raises(KeyboardInterrupt):
        large.worker(lambda *given: next(turns, failing(KeyboardInterrupt()))(*given)).work()
    Study(journal, 1).worker().work()
    assert [one.state for one in large.outcome.tried] == ["complete", "complete", "retried", "complete"]


@pytest.mark.parametrize("told", [{}, {"calls": 1}])
def test_a_trial_that_was_taken_over_meanwhile_counts_once(storage: str, told: dict[str, int]) -> None:
    """A worker that was asleep for long comes back with a score that nobody waits for any more."""
    study, elsewhere = Study(storage, 1), Study(storage, 1)

    def asleep(point: Point, run: str, say: Say) -> Found:
        elsewhere.study.tell(0, state=storage_module.TrialState.FAIL)
        again = storage_module.RetryHeartbeatStaleTrialCallback()
        again(elsewhere.study, elsewhere.study.trials[0])
        return Found(0.99, 1.0, told)

    study.worker(first_then(asleep)).work()
    first, second = study.outcome.tried
    assert (first.state, first.score, second.state, second.again) == ("retried", None, "complete", 0)
    assert second.score != 0.99
    assert any("another worker took it over" in line for line in study.said)


def test_one_trial_too_many_asks_nothing_and_is_named(journal: str) -> None:
    """Two workers may reach for the last one at once."""
    study = Study(journal, 1)
    study.worker().work()
    study.worker(failing(AssertionError("asked")))._run_one()  # pyright: ignore[reportPrivateUsage]
    assert [one.state for one in study.outcome.tried] == ["complete", "surplus"]
    study.worker(failing(AssertionError("asked"))).work()
    assert len(study.outcome.tried) == 2


def test_a_study_can_be_made_larger(journal: str) -> None:
    """With more trials in the command; with fewer nothing happens."""
    Study(journal, 3).worker().work()
    larger = Study(journal, 5)
    larger.worker().work()
    Study(journal, 2).worker(failing(AssertionError("asked"))).work()
    assert larger.outcome.counts["complete"] == 5


def test_signs_of_life_go_on_while_a_trial_runs(journal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow trial is not given up by those who watch."""
    monkeypatch.setattr(storage_module, "MISSED", 2)
    study, watcher = Study(journal, 1), Study(journal, 1)

    def slow(point: Point, run: str, say: Say) -> Found:
        for _ in range(14):
            time.sleep(0.25)
            assert watcher.storage._get_stale_trial_ids(study.study._study_id) == []  # pyright: ignore[reportPrivateUsage]
        return pretended(point, run, say)

    study.worker(slow).work()
    assert study.outcome.counts["complete"] == 1
