"""`dspy-reflex compile`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dspy_reflex.cli.common import (
    FILE,
    PROGRAM,
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

OPTIMIZERS = ("labeled_few_shot", "bootstrap_few_shot", "bootstrap_random_search", "miprov2")


@click.command("compile")
@click.argument("program", type=PROGRAM)
@datasets_option
@click.option("--optimizer", type=click.Choice(OPTIMIZERS), default="miprov2", show_default=True)
@lm_option
@click.option("--prompt-lm", help="Model that writes instructions. Default: --lm.")
@click.option("--teacher-lm", help="Stronger model that works out demos for --lm. Default: --lm.")
@taxonomy_option
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--max-demos", type=click.IntRange(0, 200), default=16, show_default=True)
@click.option("--trials", type=click.IntRange(1, 1000), default=12, show_default=True)
@click.option("--threads", type=click.IntRange(1, 256), default=1, show_default=True)
@leave_out_option
@skip_bad_option
@click.option("--out", type=FILE, default=Path("programs"), show_default=True, help="Library the program goes to.")
@click.option("--run", type=FILE, help="Folder for config and result. Default: a new one under experiments/.")
@as_json
def command(
    program: str, datasets: tuple[Path, ...], taxonomy: str, out: Path, run: Path | None, as_json: bool, **options: Any
) -> None:
    """Compile root_cause or rule on labelled failures and export it as one file.

    \b
    labeled_few_shot         labelled rows as demos; no model call
    bootstrap_few_shot       demos with worked answers, a few calls a demo
    bootstrap_random_search  many demo sets, the best on val kept
    miprov2                  new instructions and demo sets, searched together
    """  # noqa: D301 - click takes the escape as 'do not rewrap'
    need_compile("compile")
    from dspy_reflex.optimize.api import new_run
    from dspy_reflex.optimize.compile import CompileOptions, run_compile
    from dspy_reflex.taxonomies.load import load_taxonomy

    chosen = CompileOptions(program, default_datasets(datasets), load_taxonomy(taxonomy), **options)
    result = run_compile(chosen, out=out, run=run or new_run(chosen), say=teller())
    if as_json:
        print_json(result.to_json())
        return
    scores = result.scores
    click.echo(f"compiled {result.artifact.name} with {chosen.optimizer} in {result.calls} calls")
    click.echo(f"  uncompiled  {_score(scores['uncompiled'])}")
    click.echo(f"  compiled    {_score(scores)}")
    click.echo(f"  written to  {result.path}, run in {result.run}")


def _score(scores: dict[str, Any]) -> str:
    low, high = scores["interval"]
    return f"{scores['on']} {scores['metric']} {scores['value']:.3f} [{low:.3f}, {high:.3f}], n={scores['n']}"
