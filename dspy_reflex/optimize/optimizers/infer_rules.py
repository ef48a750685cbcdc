"""Rules that a prompt model infers from labelled rows, under the basic instruction and beside demos.

The questions are those of DSPy's `InferRules`. Its search is replaced: it writes into the signature class that the user's
own module shares, shows the prompt model the whole train set, and leaves out one row after another until it fits. Here
each candidate has a signature of its own, and rules are inferred from as many rows as the prompt model is shown at once.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from dspy_reflex.optimize.optimizers.base import Calls, Optimizer, Options, Setting, Sizes, option

ADHERE = "Please adhere to the following rules when making your prediction:"
"""DSPy's own words."""


@dataclass(frozen=True)
class InferRulesOptions(Options):
    """How many demos, rules, and sets of rules."""

    max_demos: int = option(16, 0, 200, "demos in the prompt", search=(0, 6, 16))
    max_bootstrapped: int = option(4, 0, 50, "demos among them that the teacher works out", search=(0, 2, 4))
    rules: int = option(10, 1, 100, "rules to infer at once", search=(10, 20))
    shown: int = option(
        30, 2, 1000, "rows that rules are inferred from; the offline learner reads all", search=(30, 60)
    )
    trials: int = option(12, 1, 1000, "candidates to score", search=(6, 12))


def _run(student: Any, setting: Setting, options: InferRulesOptions) -> Any:
    from dspy_reflex.optimize.search.demos import bootstrapped, in_parallel, with_demos

    program = student
    if options.max_demos:
        worked_out = min(options.max_bootstrapped, options.max_demos)
        program = bootstrapped(student, setting, setting.trainset, worked_out, options.max_demos)
    predictor = program.predictors()[0]

    def one(place: int) -> str:
        return _inferred(predictor, setting, options, setting.seed * options.trials + place)

    told = in_parallel(one, range(options.trials), setting.threads)
    adhering = f"{predictor.signature.instructions}\n\n{ADHERE}\n"
    different = dict.fromkeys(filter(None, told))
    setting.board.race_all([with_demos(program, predictor.demos, adhering + rules) for rules in different])
    return setting.board.leader(student)


def _inferred(predictor: Any, setting: Setting, options: InferRulesOptions, seed: int) -> str:
    """Rules from some rows, classes in turn; none if the answer cannot be used."""
    from dspy.teleprompt.infer_rules import InferRules, RulesInductionProgram
    from dspy.utils.exceptions import AdapterParseError

    from dspy_reflex.optimize.search.demos import in_turn

    number = max(options.shown, setting.view_batch)
    rows = setting.trainset
    if number < len(rows):
        rows = in_turn(random.Random(seed).sample(rows, len(rows)))[:number]
    asks = InferRules()
    text = asks.format_examples(asks.get_predictor_demos(rows, predictor), predictor.signature)
    induction = RulesInductionProgram(options.rules, {"lm": setting.prompt_lm})
    induction.rng = random.Random(seed)  # its own begins with 0 whatever the seed
    try:
        return str(induction(text))
    except AdapterParseError:
        return ""


def _calls(options: InferRulesOptions, sizes: Sizes) -> Calls:
    worked_out = min(options.max_bootstrapped, options.max_demos)
    return Calls(
        bootstrap=sizes.train if worked_out else 0,
        propose=options.trials,
        evaluate=options.trials * sizes.val,
    )


OPTIMIZER = Optimizer(
    name="infer_rules",
    learns="rules that rows have in common, under the instruction",
    pick_when="the classes follow rules that can be said",
    options=InferRulesOptions,
    calls=_calls,
    run=_run,
    looks_further_with="trials",
)
