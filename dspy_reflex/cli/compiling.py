"""`dspy-reflex compile`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from dspy_reflex.cli.common import (
    EXIT_STOPPED,
    FILE,
    PROGRAM,
    F,
    Screen,
    as_json,
    datasets_option,
    default_datasets,
    leave_out_option,
    lm_option,
    need_compile,
    print_json,
    skip_bad_option,
    taxonomy_option,
    teller,
)  # fmt: skip
from dspy_reflex.optimize.optimizers import OPTIMIZERS
from dspy_reflex.optimize.optimizers.base import flag

LIMITS = ("max_calls", "max_tokens", "max_usd", "max_time", "max_errors")


def optimizer_options(function: F) -> F:
    """An option for each option of an optimizer; those that several take are one."""
    owners: dict[str, dict[Any, list[str]]] = {}
    known: dict[str, Any] = {}
    for one in OPTIMIZERS.values():
        for each in fields(one.options):
            owners.setdefault(each.name, {}).setdefault(each.default, []).append(one.name)
            known[each.name] = each
    for name, each in reversed(known.items()):
        defaults = "; ".join(f"{default} for {', '.join(names)}" for default, names in owners[name].items())
        text = f"{each.metadata['text'].capitalize()}. Default: {defaults}."
        function = click.option(flag(name), type=int, help=text)(function)
    return function


def limit_options(function: F) -> F:
    """The limits of a budget."""
    for name, kind, text in reversed(
        [
            ("max-calls", int, "Stop before the run makes more calls."),
            ("max-tokens", int, "Stop before it uses more tokens, input and output together."),
            ("max-usd", float, "Stop before it costs more."),
            ("max-time", float, "Stop after so many seconds."),
            ("max-errors", int, "Calls that may be given up, and asked again, before it stops.  [default: 0]"),
        ]
    ):
        function = click.option(f"--{name}", type=kind, help=text)(function)
    return function


def _costs(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str, float], ...]:
    try:
        parts = [(value.partition("=")[0].partition(":"), float(value.partition("=")[2])) for value in values]
        return tuple((gold, told, cost) for (gold, _, told), cost in parts)
    except ValueError:
        raise click.BadParameter("give GOLD:TOLD=COST, such as tool_failure:overconfidence=3") from None


def _explained(function: Callable[..., None]) -> Callable[..., None]:
    """The docstring, with a line for each optimizer."""
    width = max(map(len, OPTIMIZERS))
    lines = [f"{one.name:<{width}}  {one.learns}; pick it when {one.pick_when}" for one in OPTIMIZERS.values()]
    function.__doc__ = f"{function.__doc__}\n\n    \b\n    " + "\n    ".join(lines)
    return function


@click.command("compile")
@click.argument("program", type=PROGRAM, required=False)
@datasets_option
@click.option("--optimizer", type=click.Choice([*OPTIMIZERS]), default="miprov2", show_default=True)
@optimizer_options
@lm_option
@click.option("--prompt-lm", help="Model that writes instructions. Default: --lm.")
@click.option("--teacher-lm", help="Stronger model that works out demos for --lm. Default: --lm.")
@taxonomy_option
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--threads", type=click.IntRange(1, 256), default=1, show_default=True)
@click.option(
    "--cost", "costs", multiple=True, metavar="GOLD:TOLD=COST", callback=_costs,
    help="A mistake that is worse than others, which cost 1; candidates are then chosen by cost. Repeatable.",
)  # fmt: skip
@click.option(
    "--target-precision", type=click.FloatRange(0, 1, min_open=True), default=0.8, show_default=True,
    help="Share of right answers wanted where no person is asked.",
)  # fmt: skip
@click.option(
    "--batch", is_flag=True, help="Ask whole val sets through the provider's batches (anthropic/…): half the price."
)
@click.option(
    "--cross-calibrate",
    is_flag=True,
    help="Learn what confidence is worth on train, out of fold, instead of on val: five more compiles, far more rows.",
)
@click.option("--learning-curve", is_flag=True, help="Compile on parts of the train set too.")
@limit_options
@leave_out_option
@skip_bad_option
@click.option("--dry-run", is_flag=True, help="Say what it would cost at most, and stop.")
@click.option("--out", type=FILE, default=Path("programs"), show_default=True, help="Library the program goes to.")
@click.option("--run", type=FILE, help="Folder for journal and result. Default: a new one under experiments/.")
@click.option(
    "--resume", type=FILE, metavar="RUN", help="Go on with a run; only --out and limits may be given with it."
)
@as_json
@click.pass_context
@_explained
def command(
    ctx: click.Context, program: str | None, datasets: tuple[Path, ...], taxonomy: str, out: Path, run: Path | None,
    resume: Path | None, dry_run: bool, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Compile root_cause or rule on labelled failures and export it as one file."""
    need_compile("compile")
    from dspy_reflex.optimize.compile import resume_compile, run_compile

    limits = {_field(name): options.pop(name) for name in LIMITS if name in options}
    limits = {name: value for name, value in limits.items() if value is not None}
    screen = Screen()
    if resume:
        _only(ctx, "resume", "out", "as_json", *LIMITS)
        result = resume_compile(resume, out=out, limits=limits, say=screen.say, watch=screen.watch)
    elif program is None:
        raise click.UsageError("say what to compile: root_cause or rule")
    else:
        chosen = _chosen(program, datasets, taxonomy, limits, options)
        if dry_run:
            _tell_estimate(chosen, as_json)
            return
        from dspy_reflex.optimize.api import new_run

        result = run_compile(chosen, out=out, run=run or new_run(chosen), say=screen.say, watch=screen.watch)
    _tell(result, as_json)
    if result.partial:
        raise SystemExit(EXIT_STOPPED)


def _chosen(
    program: str, datasets: tuple[Path, ...], taxonomy: str, limits: dict[str, Any], options: dict[str, Any]
) -> Any:
    from dspy_reflex.optimize.models.budget import Budget
    from dspy_reflex.optimize.options import CompileOptions
    from dspy_reflex.taxonomies.load import load_taxonomy

    theirs = {each.name for one in OPTIMIZERS.values() for each in fields(one.options)}
    given = {name: options.pop(name) for name in theirs}
    settings = {name: value for name, value in given.items() if value is not None}
    return CompileOptions(
        program,
        default_datasets(datasets),
        load_taxonomy(taxonomy),
        settings=settings,
        budget=Budget(**limits),
        **options,
    )


def _field(name: str) -> str:
    """The name of a limit in `Budget`, with its unit."""
    return "max_time_s" if name == "max_time" else name


def _only(ctx: click.Context, *allowed: str) -> None:
    """Refuse options that a run that goes on has from its beginning."""
    from click.core import ParameterSource

    spelt = {each.name: each.opts[0] for each in ctx.command.params}
    given = [name for name in ctx.params if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if others := [spelt[name] for name in given if name not in allowed]:
        raise click.UsageError(f"--resume takes everything but --out and limits from the run; leave out {others[0]}")


def _tell(result: Any, as_json: bool) -> None:
    if as_json:
        print_json(result.to_json())
        return
    scores, told = result.scores, result.to_json()
    partial = f", partial: {result.partial}" if result.partial else ""
    click.echo(f"compiled {result.artifact.name} with {told['optimizer']} in {result.calls} calls{partial}")
    click.echo(f"  uncompiled  {_score(scores['uncompiled'])}")
    click.echo(f"  compiled    {_score(scores)}")
    click.echo(f"  written to  {result.path}, run in {result.run}")


def _tell_estimate(chosen: Any, as_json: bool) -> None:
    from dspy_reflex.optimize.estimate import estimate

    found = estimate(chosen, teller())
    if as_json:
        print_json(found.to_json())
        return
    for line in found.lines():
        click.echo(line)


def _score(scores: dict[str, Any]) -> str:
    low, high = scores["interval"]
    return f"{scores['on']} {scores['metric']} {scores['value']:.3f} [{low:.3f}, {high:.3f}], n={scores['n']}"
