"""DSPy's MIPROv2 for programs of one predictor, with the parts that cost most done differently.

- Demo sets are worked out in parallel and balanced over classes (`optimize.search.demos`); the data summary is written meanwhile.
- Instructions are proposed in parallel. What the program's source looks like is left out of the question: it is one
  predictor, and the basic instruction says all there is to know about it.
- The search asks val block by block and drops candidates that lie behind (`optimize.search.scoreboard`), never scores a pair of
  instruction and demos twice, and begins with a Latin square, so that TPE has something to start from. DSPy's own begins
  with ten random trials.
"""

from __future__ import annotations

import contextvars
import copy
import random
import statistics
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dspy.propose.dataset_summary_generator import create_dataset_summary
from dspy.propose.grounded_proposer import TIPS, GroundedProposer
from dspy.utils.exceptions import AdapterParseError

from dspy_reflex.optimize.optimizers.base import Setting
from dspy_reflex.optimize.optimizers.miprov2 import MiproOptions
from dspy_reflex.optimize.search.demos import Demos, demo_sets, in_parallel, with_demos

SHOWN_DEMOS = 3
"""Worked demos that a proposer is shown where the program itself gets none."""


def compile_mipro(student: Any, setting: Setting, options: MiproOptions) -> Any:
    """Search instructions and demo sets together; the best candidate is on the board."""
    worked_out, demos = options.max_bootstrapped, options.max_demos
    if not demos:
        worked_out = demos = SHOWN_DEMOS

    with ThreadPoolExecutor(1) as pool:
        summary = pool.submit(contextvars.copy_context().run, _summary, setting)
        shown = [[], *demo_sets(student, setting, options.candidates - 1, min(worked_out, demos), demos)]
        summary.result()
    instructions = _proposed(student, setting, shown, options.candidates)
    return _searched(student, setting, instructions, shown if options.max_demos else [[]], options.trials)


def _summary(setting: Setting) -> str:
    """The data summary; the proposer asks for it again, and finds it in the journal."""
    try:
        return create_dataset_summary(
            trainset=setting.trainset, view_data_batch_size=setting.view_batch, prompt_model=setting.prompt_lm
        )
    except AdapterParseError:  # the proposer meets it again, and goes on without
        return ""


def _proposed(student: Any, setting: Setting, shown: list[Demos], number: int) -> list[str]:
    """Different instructions, the basic one first."""
    proposer = GroundedProposer(
        program=student,
        trainset=setting.trainset,
        prompt_model=setting.prompt_lm,
        view_data_batch_size=setting.view_batch,
        program_aware=False,
        use_instruct_history=False,
        set_history_randomly=False,
    )

    def one(place: int) -> str:
        mine = copy.copy(proposer)  # with random numbers of its own, so that threads change nothing
        mine.rng = random.Random(setting.seed * number + place)
        tip = TIPS[mine.rng.choice(list(TIPS))]
        mine.use_tip = bool(tip)
        question = {"program": student, "predictor": student.predictors()[0], "pred_i": 0}
        demos = {"demo_candidates": {0: shown}, "demo_set_i": place % len(shown)}
        try:
            return mine.propose_instruction_for_predictor(**question, **demos, trial_logs={}, tip=tip)
        except AdapterParseError:
            return ""

    told = in_parallel(one, range(1, number), setting.threads)
    return list(dict.fromkeys([student.predictors()[0].signature.instructions, *filter(None, told)]))


def _searched(student: Any, setting: Setting, instructions: list[str], sets: list[Demos], trials: int) -> Any:
    """Race pairs of instruction and demos that TPE suggests."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    square = _latin(len(instructions), len(sets))
    sampler = optuna.samplers.TPESampler(seed=setting.seed, multivariate=True, n_startup_trials=len(square))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for instruction, demos in square:
        study.enqueue_trial(_params(instruction, demos))
    points: dict[tuple[int, int], float] = {}

    def made(pair: tuple[int, int]) -> Any:
        return with_demos(student, sets[pair[1]], instructions[pair[0]])

    number = min(trials, len(instructions) * len(sets))
    for place in range(number):
        trial, pair = _ask(study, len(instructions), len(sets))
        if pair in points:  # TPE repeats itself where it is sure; what it has not tried is worth more
            study.tell(trial, points[pair])
            study.enqueue_trial(_params(*_untried(points, len(instructions), len(sets))))
            trial, pair = _ask(study, len(instructions), len(sets))
        following = [made(next_pair) for next_pair in square[place + 1 : number][:1]]
        candidate = setting.board.race(made(pair), *following)
        points[pair] = candidate.mean
        study.tell(trial, candidate.mean)
    return setting.board.leader(student)


def _ask(study: Any, instructions: int, sets: int) -> tuple[Any, tuple[int, int]]:
    trial = study.ask()
    instruction = trial.suggest_categorical("instruction", range(instructions))
    return trial, (instruction, trial.suggest_categorical("demos", range(sets)))


def _params(instruction: int, demos: int) -> dict[str, int]:
    return {"instruction": instruction, "demos": demos}


def _latin(instructions: int, sets: int) -> list[tuple[int, int]]:
    """Pairs in which every instruction and every demo set occurs, the uncompiled program first."""
    return [(i % instructions, i % sets) for i in range(max(instructions, sets))]


def _untried(points: dict[tuple[int, int], float], instructions: int, sets: int) -> tuple[int, int]:
    """The untried pair whose instruction and demos did best in the pairs that were tried."""

    def promise(pair: tuple[int, int]) -> float:
        return sum(
            statistics.fmean([value for tried, value in points.items() if tried[part] == pair[part]] or [0.0])
            for part in (0, 1)
        )

    pairs = [(i, j) for i in range(instructions) for j in range(sets) if (i, j) not in points]
    return max(pairs, key=promise)
