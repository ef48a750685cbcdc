"""`dspy-reflex diagnose`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dspy_reflex.cli.common import (
    EXIT_STOPPED,
    FILE,
    as_json,
    concurrency_option,
    lm_option,
    print_json,
    read_failures,
    skip_bad_option,
    teller,
)  # fmt: skip
from dspy_reflex.untrusted import neutralise

if TYPE_CHECKING:
    from dspy_reflex.records.diagnosis import Diagnosis
    from dspy_reflex.records.failure import Failure
    from dspy_reflex.stages.batch import Batch

EVERY = 100
BAR = 24


@click.command("diagnose")
@click.argument("file", type=FILE)
@click.option("--program", "path", type=FILE, help="Artefact. Default: the current one for the model.")
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
    file: Path, path: Path | None, lm: str, concurrency: int, max_usd: float | None, in_batches: bool,
    run: Path | None, skip_bad: bool, as_json: bool,
) -> None:  # fmt: skip
    """Name the root cause of each failure in FILE (JSON Lines with task and actual_outcome; - for stdin)."""
    from dspy_reflex.runtime.program import load_program
    from dspy_reflex.stages.diagnose import diagnose

    if run and not in_batches:
        raise click.UsageError("--run goes with --batch")
    say = teller()
    program = load_program("root_cause", path=path, lm=lm)
    if program.warning:
        say(f"warning: {program.warning}")
    failures = read_failures(file, say, skip_bad=skip_bad)
    if in_batches:
        from dspy_reflex.stages.bulk import diagnose_in_batches  # it brings the HTTP clients

        batch = diagnose_in_batches(program, failures, folder=run, max_usd=max_usd, tell=say)
    else:
        tick = progress(say, len(failures))
        batch = diagnose(program, failures, concurrency=concurrency, max_usd=max_usd, tick=tick)
    if as_json:
        print_json({"diagnoses": [one.model_dump(mode="json") for one in batch.done], **costs(batch)})
    else:
        _print(failures, batch)
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


def _print(failures: list[Failure], batch: Batch[Diagnosis]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold")
    for name in ("failure", "severity", "root cause", "conf", "symptom", "review"):
        table.add_column(name, justify="right" if name == "conf" else "left")
    for place, found in zip(batch.answered, batch.done, strict=True):
        failure = failures[place]
        cause, review = found.root_cause or "-", "needs review" if found.needs_review else ""
        table.add_row(
            neutralise(failure.id) or "-", failure.severity, cause, f"{found.confidence:.0%}", found.symptom, review
        )
    console = Console(highlight=False, markup=False)
    console.print(table)
    if batch.done:
        console.print(f"\nby {batch.done[0].program} on {batch.done[0].model}; {batch.done[0].score}\n")
        _distribution(batch.done)


def _distribution(found: tuple[Diagnosis, ...]) -> None:
    counts = Counter(one.root_cause or "(no answer)" for one in found)
    for cause, count in counts.most_common():
        bar = "\u2588" * max(1, round(BAR * count / len(found)))
        click.echo(f"  {cause:<24}{bar:<{BAR}} {count} ({count / len(found):.1%})")
