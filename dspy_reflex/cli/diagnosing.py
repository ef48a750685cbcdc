"""`dspy-reflex diagnose`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dspy_reflex.cli.common import (
    EXIT_STOPPED,
    FILE,
    agent_options,
    as_json,
    concurrency_option,
    home_option,
    lm_option,
    print_json,
    read_failures,
    refuse,
    since_option,
    skip_bad_option,
    teller,
)  # fmt: skip
from dspy_reflex.untrusted import neutralise

if TYPE_CHECKING:
    from dspy_reflex.records.diagnosis import Diagnosis
    from dspy_reflex.stages.asking.batch import Batch

EVERY = 100
BAR = 24


ONLY_WITH_FILE = ("in_batches", "run", "skip_bad")
ONLY_WITHOUT_FILE = (
    "days",
    "since",
    "agent",
    "with_children",
    "watch",
    "fallback",
    "max_usd_per_day",
    "home",
)


@click.command("diagnose")
@click.argument("file", type=FILE, required=False)
@click.option("--program", "path", type=FILE, help="Artefact. Default: the current one for the model.")
@click.option(
    "--days", type=click.FloatRange(min=0), default=7.0, show_default=True, help="How far back failures count."
)
@since_option
@agent_options
@click.option("--watch", is_flag=True, help="Go on with what is recorded later, until Ctrl-C.")
@click.option("--fallback", help="Model to ask while the first is out of reach; its diagnoses are made again later.")
@click.option("--max-usd-per-day", type=click.FloatRange(min=0), help="Ask no more today once models cost this much.")
@home_option
@lm_option
@concurrency_option
@click.option("--max-usd", type=click.FloatRange(min=0), help="Stop when this much is spent.")
@click.option(
    "--batch",
    "in_batches",
    is_flag=True,
    help="Ask in batches (anthropic/… only): half the price, within a day; killed, the same command goes on. "
    "With --max-usd nothing is sent that could cost more.",
)
@click.option("--run", type=FILE, help="Folder to keep batches in. Default: one under batches/, by what is asked.")
@skip_bad_option
@as_json
def command(
    file: Path | None, path: Path | None, lm: str, concurrency: int, max_usd: float | None, in_batches: bool,
    run: Path | None, skip_bad: bool, as_json: bool, **stored: Any,
) -> None:  # fmt: skip
    """Name the root cause of each recorded failure that has no diagnosis by this program yet.

    With FILE (JSON Lines with task and actual_outcome; - for stdin) its failures are diagnosed, and nothing is kept.
    """
    asking: dict[str, Any] = {"path": path, "concurrency": concurrency, "max_usd": max_usd, "as_json": as_json}
    if file is None:
        from dspy_reflex.cli.loop.diagnose import diagnose_store

        refuse(ONLY_WITH_FILE, "with a FILE")
        diagnose_store(**asking, **stored)
        return
    refuse(ONLY_WITHOUT_FILE, "without a FILE")
    if run and not in_batches:
        raise click.UsageError("--run goes with --batch")
    _diagnose_file(file, lm, in_batches=in_batches, run=run, skip_bad=skip_bad, **asking)


def _diagnose_file(
    file: Path, lm: str, *, path: Path | None, concurrency: int, max_usd: float | None, in_batches: bool,
    run: Path | None, skip_bad: bool, as_json: bool,
) -> None:  # fmt: skip
    """Diagnose the failures of a file, and keep nothing."""
    from dspy_reflex.runtime.program import load_program
    from dspy_reflex.stages.diagnosing.diagnose import diagnose

    say = teller()
    program = load_program("root_cause", path=path, lm=lm)
    if program.warning:
        say(f"warning: {program.warning}")
    failures = read_failures(file, say, skip_bad=skip_bad)
    if in_batches:
        from dspy_reflex.stages.diagnosing.bulk import diagnose_in_batches  # it brings the HTTP clients

        batch = diagnose_in_batches(program, failures, folder=run, max_usd=max_usd, tell=say)
    else:
        tick = progress(say, len(failures))
        batch = diagnose(program, failures, concurrency=concurrency, max_usd=max_usd, tick=tick)
    if as_json:
        print_json({"diagnoses": [one.model_dump(mode="json") for one in batch.done], **costs(batch)})
    else:
        print_table([failures[place].severity for place in batch.answered], batch.done)
        print_distribution(batch.done)
    stop_if_stopped(batch)


def progress(say: Callable[[str], None], total: int) -> Callable[[int], None]:
    """A function that tells now and then how far a batch is."""

    def tick(done: int) -> None:
        if done % EVERY == 0 and done < total:
            say(f"{done}/{total}")

    return tick


def costs(batch: Batch[Any]) -> dict[str, object]:
    """What a batch used, for JSON."""
    return {
        "left": batch.left,
        "stopped": batch.stopped,
        "calls": batch.calls,
        "input_tokens": batch.input_tokens,
        "output_tokens": batch.output_tokens,
        "cost_usd": batch.cost_usd,
    }


def stop_if_stopped(batch: Batch[Any]) -> None:
    """Say why failures are left, and leave with exit code 1."""
    if batch.stopped:
        click.echo(f"stopped: {batch.stopped} ({batch.left} left)", err=True)
        raise SystemExit(EXIT_STOPPED)


def print_table(severities: Sequence[str], found: Sequence[Diagnosis]) -> None:
    """Diagnoses, and who made them."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold")
    for name in ("failure", "severity", "root cause", "conf", "symptom", "review"):
        # an id that is cut is of no use to other commands
        overflow = "fold" if name == "failure" else "ellipsis"
        table.add_column(name, justify="right" if name == "conf" else "left", overflow=overflow)
    for severity, said in zip(severities, found, strict=True):
        cause, review = said.root_cause or "-", "needs review" if said.needs_review else ""
        table.add_row(
            neutralise(said.failure_id) or "-", severity, cause, f"{said.confidence:.0%}", said.symptom, review
        )
    console = Console(highlight=False, markup=False)
    console.print(table)
    if found:
        console.print(f"\nby {found[0].program} on {found[0].model}; {found[0].score}\n")


def print_distribution(found: Sequence[Diagnosis]) -> None:
    """How the causes are spread, with a bar for each."""
    counts = Counter(one.root_cause or "(no answer)" for one in found)
    for cause, count in counts.most_common():
        bar = "\u2588" * max(1, round(BAR * count / len(found)))
        click.echo(f"  {cause:<24}{bar:<{BAR}} {count} ({count / len(found):.1%})")
