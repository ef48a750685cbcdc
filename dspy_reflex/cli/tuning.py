"""`dspy-reflex tune`."""

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
    need_compile,
    print_json,
    skip_bad_option,
    taxonomy_option,
    teller,
)  # fmt: skip
from dspy_reflex.optimize.optimizers import OPTIMIZERS


@click.command("tune")
@click.argument("program", type=PROGRAM)
@datasets_option
@click.option("--trials", type=click.IntRange(1, 100_000), default=24, show_default=True, help="Of the whole study.")
@click.option("--study", help="Name that workers share.  [default: tune-PROGRAM]")
@click.option(
    "--storage", metavar="URL",
    help="journal:PATH, sqlite:///PATH or postgresql://USER@HOST/DATABASE.  [default: study.journal in --out]",
)  # fmt: skip
@click.option(
    "--optimizer",
    "optimizers",
    type=click.Choice([*OPTIMIZERS]),
    multiple=True,
    help="To search over; repeatable.  [default: all]",
)
@click.option(
    "--lm", "lms", multiple=True, envvar="REFLEX_LM", help="Model to search over; repeatable.  [default: offline]"
)
@click.option("--prompt-lm", "prompt_lms", multiple=True, help="Other model that may write instructions; repeatable.")
@taxonomy_option
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--threads", type=click.IntRange(1, 256), default=1, show_default=True)
@leave_out_option
@skip_bad_option
@click.option("--out", type=FILE, help="Folder for report and runs.  [default: experiments/STUDY]")
@as_json
def command(
    program: str, datasets: tuple[Path, ...], study: str | None, storage: str | None, optimizers: tuple[str, ...],
    lms: tuple[str, ...], prompt_lms: tuple[str, ...], taxonomy: str, out: Path | None, as_json: bool, **options: Any,
) -> None:  # fmt: skip
    """Search over optimizers, their options and models: the best score for the fewest tokens a call.

    Each trial is one compile. The same command on other machines joins the study, if --storage is reached from there;
    after a crash it goes on; on a finished study it does nothing but tell the outcome. --trials may be raised later.
    """
    need_compile("tune")
    from dspy_reflex.optimize.tune.options import TuneOptions
    from dspy_reflex.optimize.tune.report import front_lines
    from dspy_reflex.optimize.tune.space import Space
    from dspy_reflex.optimize.tune.study import tune
    from dspy_reflex.taxonomies.load import load_taxonomy

    name = study or f"tune-{program}"
    place = out or Path("experiments") / name
    space = Space(optimizers or (*OPTIMIZERS,), lms or ("offline",), prompt_lms)
    chosen = TuneOptions(
        program, default_datasets(datasets), load_taxonomy(taxonomy), space, study=name,
        storage=storage or f"journal:{place / 'study.journal'}", **options,
    )  # fmt: skip
    found = tune(chosen, out=place, say=teller())
    if as_json:
        print_json(found.to_json())
        return
    click.echo(f"{name}: {', '.join(f'{count} {state}' for state, count in found.counts.items() if count)}")
    for line in front_lines(found):
        click.echo(f"  {line}")
    click.echo(f"  report in {place / 'report.md'}")
