"""What is searched, and where the search begins."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import optuna
import pytest

from dspy_reflex.errors import ConfigError
from dspy_reflex.optimize.optimizers import OPTIMIZERS, optimizer
from dspy_reflex.optimize.tune.attempt import Found, Say
from dspy_reflex.optimize.tune.space import Point, Space, searched, words, writes_instructions
from tests.optimize.tune.studies import Study, pretended

EVERYTHING = Space((*OPTIMIZERS,), ("offline", "openai/a"), ("anthropic/b",))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_value_that_is_searched_is_one_that_the_optimizer_takes(name: str) -> None:
    """Its default among them."""
    defaults = optimizer(name).configured({})
    for option, values in searched(name).items():
        assert getattr(defaults, option) in values
        for value in values:
            optimizer(name).configured({option: value})


def test_a_trial_chooses_options_of_its_own_optimizer_only() -> None:
    """And a prompt model only where one is asked."""
    study = optuna.create_study()
    seen: set[str] = set()
    for _ in range(60):
        trial = study.ask()
        point = EVERYTHING.suggest(trial)
        seen.add(point.optimizer)
        assert {*point.settings} <= {each.name for each in fields(optimizer(point.optimizer).options)}
        assert ("prompt_lm" in trial.params) == writes_instructions(point.optimizer)
        assert point.prompt_lm in (None, "anthropic/b")
        others = [name for name in trial.params if "." in name and not name.startswith(f"{point.optimizer}.")]
        assert others == []
    assert seen == {*OPTIMIZERS}


def test_only_optimizers_that_write_instructions_ask_a_prompt_model() -> None:
    """As their estimate of calls has it."""
    asked = {name: writes_instructions(name) for name in ("labeled_few_shot", "bootstrap_random_search", "miprov2")}
    assert asked == {"labeled_few_shot": False, "bootstrap_random_search": False, "miprov2": True}


def test_an_unknown_optimizer_is_named() -> None:
    """Before anything else."""
    with pytest.raises(ConfigError, match="no optimizer 'magic'"):
        Space(("magic",), ("offline",))


def test_choices_in_words() -> None:
    """The optimizer's name once, and nothing that goes without saying."""
    choices = {"optimizer": "miprov2", "lm": "offline", "prompt_lm": "same", "miprov2.max_demos": 6}
    assert words(choices) == "miprov2 lm=offline max_demos=6"
    assert words({}) == ""


def test_a_study_begins_with_each_optimizer_as_it_is(journal: str) -> None:
    """With the first model, which writes its own instructions."""
    study = Study(journal, len(OPTIMIZERS), EVERYTHING)
    study.worker(any_model).work()
    for name, one in zip(OPTIMIZERS, study.outcome.tried, strict=False):
        defaults = optimizer(name).configured({})
        assert one.choices["optimizer"] == name
        assert one.choices["lm"] == "offline"
        assert one.choices.get("prompt_lm", "same") == "same"
        for option in searched(name):
            assert one.choices[f"{name}.{option}"] == getattr(defaults, option)


def test_the_same_seed_draws_the_same_study_whoever_draws(tmp_path: Path) -> None:
    """A trial's luck hangs on its number: one worker, or another one for each trial."""
    trials = len(OPTIMIZERS) + 6
    alone = Study(f"journal:{tmp_path / 'a'}", trials, EVERYTHING)
    alone.worker(any_model).work()
    several = alone
    for _ in range(trials):
        several = Study(f"journal:{tmp_path / 'b'}", trials, EVERYTHING)
        several.worker(any_model)._run_one()  # pyright: ignore[reportPrivateUsage]
    drawn = [[one.choices for one in study.outcome.tried] for study in (alone, several)]
    assert drawn[0] == drawn[1]
    assert len({str(choices) for choices in drawn[0]}) >= len(OPTIMIZERS) + 2


def test_nothing_is_tried_twice_while_there_is_something_new(journal: str) -> None:
    """Sixteen places, and sixteen trials."""
    study = Study(journal, 16)
    study.worker().work()
    assert len({str(sorted(one.choices.items())) for one in study.outcome.tried}) == 16


def test_the_search_goes_where_scores_are_high(journal: str) -> None:
    """More often than chance would: one optimizer in many is good."""
    study = Study(journal, 40, EVERYTHING)

    def attempt(point: Point, run: str, say: Say) -> Found:
        return Found(0.9 if point.optimizer == "miprov2" else 0.1, 100.0, {})

    study.worker(attempt).work()
    late = [one.choices["optimizer"] for one in study.outcome.tried[20:]]
    assert late.count("miprov2") > 20 / len(OPTIMIZERS) * 1.5


def any_model(point: Point, run: str, say: Say) -> Found:
    """`pretended`, for optimizers without demos too."""
    if "max_demos" in point.settings:
        return pretended(point, run, say)
    return Found(0.1, 50.0, {})
