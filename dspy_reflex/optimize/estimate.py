"""What a compile would cost at most, before anything is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from dspy_reflex.evalset.collect import collect
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.optimize.examples import examples_for
from dspy_reflex.optimize.metrics import check_costs
from dspy_reflex.optimize.models.journaled import CHARS_PER_TOKEN
from dspy_reflex.optimize.models.ledger import FIRST_GUESS_TOKENS
from dspy_reflex.optimize.modules import PROGRAMS
from dspy_reflex.optimize.optimizers import optimizer
from dspy_reflex.optimize.optimizers.base import Sizes
from dspy_reflex.optimize.options import CompileOptions
from dspy_reflex.optimize.publish import publish
from dspy_reflex.optimize.rows import Rows, train_and_val
from dspy_reflex.optimize.work import CURVE_SHARES, FOLDS
from dspy_reflex.runtime.lm.connect import OFFLINE_NAMES, count_tokens
from dspy_reflex.runtime.lm.prices import cost_usd
from dspy_reflex.runtime.render import render

INSTRUCTION_TOKENS = 1_500
"""How long an answer of a prompt model is taken to be, and the instructions that come of it."""


@dataclass(frozen=True)
class PhaseEstimate:
    """The most that a phase takes."""

    phase: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int

    @property
    def usd(self) -> float | None:
        """Its price; None if it is not known."""
        return cost_usd(self.model, self.input_tokens, self.output_tokens)


@dataclass(frozen=True)
class Estimate:
    """The most that a compile takes. Racing drops candidates early, so it mostly takes less."""

    phases: tuple[PhaseEstimate, ...]

    @property
    def calls(self) -> int:
        """Of all phases."""
        return sum(one.calls for one in self.phases)

    @property
    def tokens(self) -> int:
        """Input and output of all phases."""
        return sum(one.input_tokens + one.output_tokens for one in self.phases)

    @property
    def usd(self) -> float | None:
        """Of all phases; None if a price is not known."""
        prices = [one.usd for one in self.phases]
        return None if None in prices else sum(price or 0.0 for price in prices)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON types."""
        phases = [{**vars(one), "usd": one.usd} for one in self.phases]
        return {"calls": self.calls, "tokens": self.tokens, "usd": self.usd, "phases": phases}

    def lines(self) -> list[str]:
        """For people."""
        told = [
            f"  {one.phase:<10} {one.calls:>7} calls  {one.input_tokens + one.output_tokens:>11,} tokens  {one.model}"
            for one in self.phases
            if one.calls
        ]
        price = "price not known" if self.usd is None else f"{self.usd:.2f} USD"
        return [f"at most {self.calls} calls, about {self.tokens:,} tokens, {price}; nothing was asked", *told]


def estimate(options: CompileOptions, say: Callable[[str], None] = lambda _: None) -> Estimate:
    """Read the rows, render one prompt, and reckon.

    Tokens of a prompt are counted by the provider where it offers that for nothing, else taken to be a quarter of its
    characters; demos are taken to be of average length, instructions that have yet to be written of that of a long
    answer. Those of the offline learner sum up the rows: they are taken to be as long as all of them.

    Raises:
        ReflexError: Rows or options cannot be used.
    """
    chosen = optimizer(options.optimizer)
    settings = chosen.configured(options.settings)
    options.budget.check(options.models)
    check_costs(options.costs, options.taxonomy.labels)
    found = collect(options.datasets, options.taxonomy, say, left_out=options.leave_out, skip_bad=options.skip_bad)
    train, val = train_and_val(found.sets, options.seed)
    sizes = Sizes(len(train), len(val or train))
    chosen.check(settings, sizes)
    most = chosen.calls(settings, sizes)
    often, measured = _how_often(options, sizes, bool(val))
    plain, demo = _prompt_tokens(options, train)
    seen = sum(len(value) for example in train for value in _texts(example)) // CHARS_PER_TOKEN
    prompt, teacher = options.prompt_lm or options.lm, options.teacher_lm or options.lm
    written = seen if prompt in OFFLINE_NAMES else INSTRUCTION_TOKENS
    full = plain + demo * getattr(settings, "max_demos", 0)
    last = full + (written if most.propose else 0)
    return Estimate(
        (
            _phase("bootstrap", teacher, often * most.bootstrap, full, FIRST_GUESS_TOKENS),
            _phase("propose", prompt, often * most.propose, min(seen, plain * 10), written),
            _phase("evaluate", options.lm, often * most.evaluate, last, FIRST_GUESS_TOKENS),
            _phase("measure", options.lm, measured, last, FIRST_GUESS_TOKENS),
        )
    )


def _how_often(options: CompileOptions, sizes: Sizes, val: bool) -> tuple[int, int]:
    """How many searches there are, and how many answers are measured outside of them."""
    folds = not val or options.cross_calibrate
    points = len(CURVE_SHARES) if val and options.learning_curve else 0
    answers = sizes.val * (2 + points) + (sizes.train if val and options.cross_calibrate else 0)
    return 1 + points + (FOLDS if folds else 0), answers


def _phase(phase: str, model: str, calls: int, tokens_in: int, tokens_out: int) -> PhaseEstimate:
    return PhaseEstimate(phase, model, calls, calls * tokens_in, calls * tokens_out)


def _prompt_tokens(options: CompileOptions, train: Rows) -> tuple[int, int]:
    """Tokens of a prompt without demos, and of one demo."""
    examples = examples_for(options.program, train, options.seed)
    plain = publish(PROGRAMS[options.program](options.taxonomy), options.taxonomy)
    values = dict(examples[0].inputs())
    demo = fmean(sum(map(len, map(str, example.toDict().values()))) for example in examples)
    return count_tokens(options.lm, render(plain, values)), round(demo / CHARS_PER_TOKEN)


def _texts(row: LabelledFailure) -> list[str]:
    return [str(value) for value in row.failure.model_dump().values()]
