"""`dspy-reflex promote`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dspy_reflex.cli.common import (
    FILE,
    as_json,
    concurrency_option,
    datasets_option,
    default_datasets,
    library_option,
    lm_option,
    need_compile,
    print_json,
    teller,
)  # fmt: skip
from dspy_reflex.errors import BenchmarkError, ProgramError

if TYPE_CHECKING:
    from dspy_reflex.benchmark.predict import Contender
    from dspy_reflex.benchmark.promote import Comparison
    from dspy_reflex.evalset.labelled import LabelledFailure
    from dspy_reflex.records.move import Move
    from dspy_reflex.runtime.artifact import Artifact

EXIT_REFUSED = 1


@click.command("promote")
@click.argument("candidate", type=FILE)
@click.option(
    "--against", type=FILE, help="Program to compare with. Default: the current one of the candidate's model."
)
@datasets_option
@click.option("--split", help="Split of a folder. Default: test; a single file is used whole.")
@lm_option
@click.option(
    "--margin",
    type=click.FloatRange(0, 1),
    default=0.03,
    show_default=True,
    help="How much worse a cheaper one may be.",
)
@library_option
@concurrency_option
@click.option("--by", help="Who decides, for the history. Default: nobody is named.")
@as_json
def command(
    candidate: Path, against: Path | None, datasets: tuple[Path, ...], split: str | None, lm: str, margin: float,
    library: Path, concurrency: int, by: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Make CANDIDATE, a file or a version in the library, current for its model if it beats the current program.

    Both answer failures that neither was made with. The candidate wins if the 95 % interval of the difference lies
    above 0, or if it lies above -margin and the candidate takes 5 % fewer tokens; never if it breaks a class. Every
    decision is noted in the library's history. Exit code 1 if the candidate is refused.
    """
    need_compile("promote")
    from dspy_reflex.benchmark.promote import Decision, compare, decide, rows_digest
    from dspy_reflex.records.move import Move
    from dspy_reflex.runtime.history import history, note, promote

    one, champion, rival = _opponents(candidate, against, library, lm)
    found: Comparison | None = None
    about: dict[str, Any] = {"model": one.model, "before": champion, "after": one.version, "by": by}
    if one.version == rival.artifact.version:
        decision = Decision(False, "it is an A/A copy: the very program that it would be compared with")
    else:
        name, rows = _unseen_rows(one, rival, default_datasets(datasets), split)
        found = compare(_judged(one, rival, rows, concurrency), one.name, rival.name)
        decision = decide(found, margin)
        about |= _evidence(found, rival, margin) | {"dataset": name, "rows": rows_digest(rows)}
    action = "promote" if decision.promoted else "refuse"
    move = Move(action=action, reason=decision.reason, partial=bool(one.data.get("partial")), **about)
    decided = history(library, one.program).decided(move.rows) if move.rows else 0
    if decision.promoted:
        promote(library, one, move)
    else:
        note(library, one.program, move)
    _show(one, rival, found, move, decided, as_json)
    if not decision.promoted:
        click.get_current_context().exit(EXIT_REFUSED)


def _opponents(candidate: Path, against: Path | None, library: Path, lm: str) -> tuple[Artifact, str | None, Contender]:
    """The candidate, the version that is current for its model, and what to compare with.

    Raises:
        ProgramError: One of them is not for this model, or the candidate would replace a program unseen.
    """
    from dspy_reflex.benchmark.predict import Contender
    from dspy_reflex.cli.benchmarking import uncompiled
    from dspy_reflex.runtime.artifact import ANY_MODEL, read
    from dspy_reflex.runtime.library import current, libraries, opened
    from dspy_reflex.runtime.lm.connect import connect

    places = [library, *libraries()]
    one, model = opened(candidate, places), connect(lm)
    if one.model != model.name:
        raise ProgramError(f"{one.name} was compiled for {one.model}, not for {model.name}; name its model with --lm")
    champion = current(library, one.program).get(one.model)
    if not (against or champion):
        teller()(f"{library} has no {one.program} program for {one.model} yet: comparing with the uncompiled one")
        return one, champion, uncompiled(one, model)
    other = opened(against, places) if against else read(library / one.program / f"{champion}.json")
    if champion and other.version != champion:
        raise ProgramError(f"{champion} is current for {one.model} in {library}, not {other.name}; leave out --against")
    if other.model not in (model.name, ANY_MODEL):
        raise ProgramError(f"{other.name} was compiled for {other.model}, not for {model.name}; name another --against")
    return one, champion, Contender(other.name, "program", other, model)


def _unseen_rows(
    one: Artifact, rival: Contender, places: tuple[Path, ...], split: str | None
) -> tuple[str, list[LabelledFailure]]:
    """The test set and its name.

    Raises:
        BenchmarkError: One of the two was made with some of its rows.
    """
    from dspy_reflex.benchmark.trainset import compiled_on
    from dspy_reflex.cli.benchmarking import chosen_rows
    from dspy_reflex.records.taxonomy import Taxonomy

    name, rows = chosen_rows(places, split, Taxonomy.model_validate(one.data["taxonomy"]))
    for artifact in (one, rival.artifact):
        known = compiled_on(artifact)
        if seen := sum(row.row_hash in known for row in rows):
            raise BenchmarkError(
                f"{artifact.name} was made with {seen} of the {len(rows)} rows of {name}; "
                "name a --dataset or --split that neither program has seen"
            )
    return name, rows


def _judged(one: Artifact, rival: Contender, rows: list[LabelledFailure], concurrency: int) -> Any:
    from dspy_reflex.benchmark.predict import Contender
    from dspy_reflex.benchmark.runner import benchmark_cause, benchmark_rule
    from dspy_reflex.cli.benchmarking import progress

    judge = benchmark_cause if one.program == "root_cause" else benchmark_rule
    contenders = [Contender(one.name, "program", one, rival.model), rival]
    return judge(rows, contenders, baselines=False, concurrency=concurrency, progress=progress())


def _evidence(found: Comparison, rival: Contender, margin: float) -> dict[str, Any]:
    return {
        "against": rival.name if rival.kind == "uncompiled" else rival.artifact.version,
        "n": found.n,
        "margin": margin,
        "difference": found.difference,
        "interval": found.interval,
        "mcnemar_p": found.mcnemar_p,
    }


def _show(one: Artifact, rival: Contender, found: Comparison | None, move: Move, decided: int, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "program": one.name,
                "promoted": move.action == "promote",
                "reason": move.reason,
                "decided_before": decided,
                "comparison": asdict(found) if found else None,
                "move": move.model_dump(mode="json", by_alias=True),
            }
        )
        return
    if found:
        _show_comparison(one, rival, found, move)
    if decided:
        times = "once" if decided == 1 else f"{decided} times"
        click.echo(f"this test set has decided {times} before; its next verdicts are worth less")
    click.echo(f"{'promoted' if move.action == 'promote' else 'refused'}: {move.reason}")


def _show_comparison(one: Artifact, rival: Contender, found: Comparison, move: Move) -> None:
    partial = ", partial" if move.partial else ""
    click.echo(
        f"candidate   {one.name}{partial}  {found.metric} {found.candidate:.3f}{_tokens(found.candidate_tokens)}"
    )
    click.echo(f"against     {rival.name}  {found.metric} {found.current:.3f}{_tokens(found.current_tokens)}")
    p = "" if found.mcnemar_p is None else f", McNemar p={found.mcnemar_p:.3f}"
    click.echo(f"difference  {found.text}, n={found.n} in {found.units} units of {move.dataset}{p}")
    for change in found.classes:
        mark = "  broken" if change.broken else ""
        recall = f"recall {change.before:.2f} to {change.after:.2f}"
        click.echo(f"  {change.label:<24}{recall}, n={change.n}, p={change.p:.3f}{mark}")


def _tokens(mean: float | None) -> str:
    return "" if mean is None else f", {mean:,.0f} tokens an answer"
