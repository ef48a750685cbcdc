"""`dspy-reflex benchmark`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dspy_reflex.cli.common import (
    FILE,
    PROGRAM,
    as_json,
    concurrency_option,
    datasets_option,
    default_datasets,
    leave_out_option,
    lm_option,
    need_compile,
    print_json,
    skip_bad_option,
    teller,
)  # fmt: skip

if TYPE_CHECKING:
    from dspy_reflex.evalset.labelled import LabelledFailure
    from dspy_reflex.records.taxonomy import Taxonomy
    from dspy_reflex.runtime.artifact import Artifact

EVERY = 200
"""Answers between two lines of progress."""


@click.command("benchmark")
@click.argument("program", type=PROGRAM)
@datasets_option
@click.option("--split", help="Split of a folder. Default: test; a single file is used whole.")
@click.option(
    "--program", "files", type=FILE, multiple=True, help="Artefact or its name; repeatable. Default: the current one."
)
@lm_option
@click.option("--diagnosed-by", type=FILE, help="For rule: an artefact whose causes are used, not the labelled ones.")
@click.option("--baselines", is_flag=True, help="Add the constant, keywords, TF-IDF and the uncompiled program.")
@click.option("--trainset", type=FILE, help="Rows the baselines learn from. Default: those of the first program.")
@click.option("--by", help="A table for each value of this field, such as source.")
@click.option("--allow-seen", is_flag=True, help="Score rows that a program was compiled on, and mark the score.")
@leave_out_option
@skip_bad_option
@concurrency_option
@click.option("--report", type=FILE, help="Folder for report.md and its pictures.")
@as_json
def command(
    program: str, datasets: tuple[Path, ...], split: str | None, files: tuple[Path, ...], lm: str,
    diagnosed_by: Path | None, baselines: bool, trainset: Path | None, by: str | None, allow_seen: bool,
    leave_out: tuple[tuple[str, str], ...], skip_bad: bool, concurrency: int, report: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Score programs on labelled failures that they have not seen, beside baselines, with intervals."""
    need_compile("benchmark")
    from dspy_reflex.benchmark.chain import diagnosed
    from dspy_reflex.benchmark.report import render, write_report
    from dspy_reflex.benchmark.runner import benchmark_abstention, benchmark_cause, benchmark_rule
    from dspy_reflex.records.taxonomy import Taxonomy
    from dspy_reflex.runtime.library import find, opened
    from dspy_reflex.runtime.lm.connect import connect

    if diagnosed_by and program != "rule":
        raise click.UsageError("--diagnosed-by is for rules: dspy-reflex benchmark rule --diagnosed-by FILE")
    model = connect(lm)
    artifacts = [opened(path) for path in files] or [find(program, model.name)]
    taxonomy = Taxonomy.model_validate(artifacts[0].data["taxonomy"])
    places = default_datasets(datasets)
    name, rows = chosen_rows(places, split, taxonomy, leave_out, skip_bad)
    contenders = _contenders(artifacts, model, uncompiled_too=baselines)
    seen: dict[str, Any] = {"allow_seen": allow_seen, "concurrency": concurrency}
    if diagnosed_by:
        diagnoser = _contenders([opened(diagnosed_by)], model)[0]
        told = diagnosed(rows, diagnoser, **seen)
        name, rows = told.named(name, diagnoser), [*told.rows]
    asking: dict[str, Any] = {**seen, "progress": progress(), "dataset": name}
    if program == "root_cause" and rows and all(row.root_cause is None for row in rows):
        found = benchmark_abstention(rows, contenders, **asking)
    else:
        judge = benchmark_cause if program == "root_cause" else benchmark_rule
        known = _trainset(trainset, artifacts[0], places, taxonomy) if baselines else ()
        found = judge(rows, contenders, trainset=known, baselines=baselines, by=by, **asking)
    if report:
        write_report(found, report)
    if as_json:
        print_json(found.to_json())
    else:
        click.echo(render(found), nl=False)


def chosen_rows(
    places: tuple[Path, ...],
    split: str | None,
    taxonomy: Taxonomy,
    left_out: tuple[tuple[str, str], ...] = (),
    skip_bad: bool = False,
) -> tuple[str, list[LabelledFailure]]:
    """The rows to score on, of one split (default: test) of each data set, and what to call them."""
    from dspy_reflex.evalset.collect import collect
    from dspy_reflex.evalset.load import SINGLE_SPLIT

    rows: list[LabelledFailure] = []
    names: list[str] = []
    for evalset in collect(places, taxonomy, teller(), left_out=left_out, skip_bad=skip_bad).sets:
        chosen = SINGLE_SPLIT if SINGLE_SPLIT in evalset.splits else split or "test"
        rows += evalset.split(chosen)
        names.append(evalset.name if chosen == SINGLE_SPLIT else f"{evalset.name}/{chosen}")
    return "+".join(names), rows


def _trainset(
    given: Path | None, first: Artifact, places: tuple[Path, ...], taxonomy: Taxonomy
) -> tuple[LabelledFailure, ...]:
    from dspy_reflex.benchmark.trainset import find_trainset
    from dspy_reflex.evalset.load import load_evalset
    from dspy_reflex.runtime.library import bundled

    if given is None:
        return find_trainset(first, [*places, Path("datasets/failures"), bundled("datasets") / "failures"], taxonomy)
    evalset = load_evalset(given, taxonomy)
    return evalset.split("train") if "train" in evalset.splits else evalset.rows


def _contenders(artifacts: list[Artifact], model: Any, *, uncompiled_too: bool = False) -> list[Any]:
    from dspy_reflex.benchmark.predict import Contender

    contenders = [Contender(one.name, "program", one, model) for one in artifacts]
    return [*contenders, uncompiled(artifacts[0], model)] if uncompiled_too else contenders


def uncompiled(artifact: Artifact, model: Any) -> Any:
    """The contender that a program was before it was compiled."""
    from dspy_reflex.benchmark.predict import Contender
    from dspy_reflex.optimize.modules import PROGRAMS
    from dspy_reflex.optimize.publish import publish
    from dspy_reflex.records.taxonomy import Taxonomy

    taxonomy = Taxonomy.model_validate(artifact.data["taxonomy"])
    plain = publish(PROGRAMS[artifact.program](taxonomy), taxonomy, model=model.name)
    return Contender("uncompiled", "uncompiled", plain, model)


def progress() -> Any:
    """What tells a benchmark's progress on stderr."""
    say = teller()

    def tell(done: int, total: int) -> None:
        if done % EVERY == 0 or done == total:
            say(f"{done}/{total} answers")

    return tell
