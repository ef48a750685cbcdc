"""New instructions, a few at a time; each round is shown how those before it did.

The questions are those of DSPy's `COPRO`. Its search is replaced: candidates are raced on val instead of being scored on
all of it, and an answer that cannot be used costs one candidate instead of the run. The prefix of the last field is not
asked for: no message would carry it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dspy_reflex.optimize.optimizers.base import Calls, Optimizer, Options, Setting, Sizes, option

TEMPERATURE = 1.4
"""DSPy's own."""
PREFIX = "proposed_prefix_for_output_field"


@dataclass(frozen=True)
class CoproOptions(Options):
    """Size of the search."""

    breadth: int = option(6, 2, 100, "instructions to write in a round", search=(4, 6, 10))
    depth: int = option(3, 1, 50, "rounds of instructions", search=(2, 3))


def _run(student: Any, setting: Setting, options: CoproOptions) -> Any:
    from dspy.teleprompt.copro_optimizer import BasicGenerateInstruction, GenerateInstructionGivenAttempts

    from dspy_reflex.optimize.search.demos import with_demos

    basic = student.predictors()[0].signature.instructions.strip()
    scores = {basic: setting.board.race(student).mean}
    for place in range(options.depth):
        if place:
            written = _written(setting, options, place, GenerateInstructionGivenAttempts, _attempts(scores, options))
        else:
            written = _written(setting, options, place, BasicGenerateInstruction, {"basic_instruction": basic})
        new = [one for one in written if one not in scores]
        raced = setting.board.race_all([with_demos(student, [], one) for one in new])
        scores |= {one: candidate.mean for one, candidate in zip(new, raced, strict=True)}
    return setting.board.leader(student)


def _written(setting: Setting, options: CoproOptions, place: int, question: Any, asked: Mapping[str, Any]) -> list[str]:
    """What the prompt model makes of one question with several seeds; what cannot be used is left out."""
    import dspy
    from dspy.utils.exceptions import AdapterParseError

    from dspy_reflex.optimize.search.demos import in_parallel

    ask = dspy.Predict(question.delete(PREFIX))
    first = (setting.seed * options.depth + place) * options.breadth

    def one(seed: int) -> str:
        model = setting.prompt_lm.copy(rollout_id=seed, temperature=TEMPERATURE)
        try:
            return ask(lm=model, **asked).proposed_instruction.strip().strip('"').strip()
        except AdapterParseError:
            return ""

    told = in_parallel(one, range(first, first + options.breadth), setting.threads)
    return list(dict.fromkeys(filter(None, told)))


def _attempts(scores: Mapping[str, float], options: CoproOptions) -> dict[str, list[str]]:
    """The best instructions so far with their scores in per cent, the best one last."""
    best = sorted(scores, key=lambda one: scores[one])[-options.breadth :]
    lines = [
        line
        for number, one in enumerate(best, start=1)
        for line in (f"Instruction #{number}: {one}", f"Resulting Score #{number}: {100 * scores[one]:.2f}")
    ]
    return {"attempted_instructions": lines}


def _calls(options: CoproOptions, sizes: Sizes) -> Calls:
    written = options.breadth * options.depth
    return Calls(propose=written, evaluate=(written + 1) * sizes.val)


OPTIMIZER = Optimizer(
    name="copro",
    learns="the instruction alone, round by round",
    pick_when="the prompt model is strong and rows are few: it sees no rows",
    options=CoproOptions,
    calls=_calls,
    run=_run,
    looks_further_with="breadth",
)
