"""`dspy-reflex programs`: what there is, what is in it, how it became current, whether it still renders as in DSPy."""

from __future__ import annotations

import json
import random
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dspy_reflex.cli.common import (
    FILE,
    PROGRAM,
    as_json,
    library_option,
    need_compile,
    print_json,
    taxonomy_option,
)  # fmt: skip
from dspy_reflex.errors import ProgramError

if TYPE_CHECKING:
    from dspy_reflex.records.move import Move
    from dspy_reflex.runtime.artifact import Artifact

ALPHABET = "abc XYZ 0189 _-.,:;'\"`{}[]()<>#|\\/\n\t\u00e9\u00df\u4e2d\u2028\U0001f600"
"""What random inputs are made of: quotes, markers, line separators, and characters of one to four bytes."""


@click.group("programs")
def command() -> None:
    """List, show, verify, export and roll back programs, and write guide-only ones."""


@command.command("list")
@as_json
def list_programs(as_json: bool) -> None:
    """List the programs in ./programs, the user's folder and the package; a damaged one is named at the end."""
    from dspy_reflex.runtime.library import everything

    rows: list[dict[str, Any]] = []
    damaged: list[str] = []
    for path in everything():
        try:
            rows.append(_row(path))
        except ProgramError as error:
            damaged.append(str(error))
    if as_json:
        print_json(rows)
    for row in [] if as_json else rows:
        mark = "*" if row["current"] else " "
        click.echo(f"{mark} {row['name']:<24} {row['model']:<14} {row['score']}  {row['path']}")
    if damaged:
        raise ProgramError("; ".join(damaged))


def _row(path: Path) -> dict[str, Any]:
    from dspy_reflex.runtime.library import current

    one = _read(path)
    used = current(path.parent.parent, one.program).get(one.model) == one.version
    return {"name": one.name, "model": one.model, "score": one.score, "current": used, "path": str(path)}


@command.command("show")
@click.argument("path", type=FILE)
@as_json
def show(path: Path, as_json: bool) -> None:
    """Show what a program is made of: instructions, demos, data, scores."""
    one = _read(path)
    if as_json:
        print_json(one.data)
        return
    data = one.data
    click.echo(
        f"{one.name}, compiled for {one.model} by {data['optimizer'].get('name', 'nobody')}, seed {data['seed']}"
    )
    click.echo(f"score      {one.score}")
    click.echo(f"threshold  {one.threshold}")
    click.echo(f"data       {data['data']['name']}: {len(data['data']['train'])} train, {len(data['data']['val'])} val")
    click.echo(f"labels     {', '.join(one.labels)}")
    click.echo(f"demos      {', '.join(str(demo['id']) for demo in data['demos']) or _retrieved(one)}\n")
    click.echo(data["instructions"])


def _retrieved(one: Artifact) -> str:
    if not one.retrieval:
        return "none"
    return f"the {one.retrieval.k} nearest of {len(one.retrieval.answers)} examples, retrieved for each input"


@command.command("verify")
@click.argument("path", type=FILE)
@click.option("--inputs", type=click.IntRange(1), default=200, show_default=True, help="Random inputs to render.")
@as_json
def verify(path: Path, inputs: int, as_json: bool) -> None:
    """Check that a program renders byte for byte what the installed DSPy would send."""
    one = _read(path)
    need_compile("programs verify")
    from dspy_reflex.optimize.publish import load_module, same_rendering

    installed = version("dspy")
    module, rng = load_module(one), random.Random(0)
    for i in range(inputs):
        values = _random_values(one, rng)
        if not same_rendering(one, module, values):
            raise ProgramError(f"{path}: input {i} renders differently in DSPy {installed}; compile it again")
    if as_json:
        print_json({"program": one.name, "inputs": inputs, "dspy": installed, "equal": True})
    else:
        click.echo(f"{one.name}: {inputs} inputs render byte for byte as in DSPy {installed}")


def _random_values(one: Artifact, rng: random.Random) -> dict[str, str]:
    """Noise, and in it words of the examples of a program that retrieves, so that some are nearer than others."""
    known = one.retrieval.index.inputs if one.retrieval else ()
    words = " ".join(rng.choice(known).values()).split() if known else []
    pieces = [*ALPHABET, *(f" {word} " for word in words)]
    return {name: "".join(rng.choices(pieces, k=rng.randrange(400))) for name in one.inputs}


@command.command("export")
@click.argument("path", type=FILE)
@click.option("--dspy", "to_dspy", is_flag=True, required=True, help="As the state file that dspy.Module.load reads.")
@click.option("--out", type=FILE, required=True, help="File to write.")
@as_json
def export(path: Path, to_dspy: bool, out: Path, as_json: bool) -> None:
    """Write a program in another form."""
    from dspy_reflex.files import write_atomic

    one = _read(path)
    write_atomic(out, (json.dumps(one.to_dspy(), ensure_ascii=False, indent=1) + "\n").encode())
    if as_json:
        print_json({"program": one.name, "out": str(out)})
    else:
        click.echo(f"{one.name} written to {out}")


@command.command("guide")
@click.argument("program", type=PROGRAM)
@taxonomy_option
@click.option("--out", type=FILE, default=Path("programs"), show_default=True, help="Library the program goes to.")
@as_json
def guide(program: str, taxonomy: str, out: Path, as_json: bool) -> None:
    """Write the guide-only program: definitions, boundaries and ties, no cues, no demos, compiled for no model.

    It is what a model gets that nothing was compiled for.
    """
    need_compile("programs guide")
    from dspy_reflex.optimize.modules import PROGRAMS
    from dspy_reflex.optimize.publish import publish
    from dspy_reflex.runtime import history
    from dspy_reflex.taxonomies.load import load_taxonomy

    labels = load_taxonomy(taxonomy)
    made = publish(PROGRAMS[program](labels), labels)
    history.guide(out, made, labels.name)
    path = out / program / f"{made.version}.json"
    if as_json:
        print_json({"artifact": str(path), "program": made.name})
    else:
        click.echo(f"{made.name} written to {path}")


@command.command("history")
@click.argument("program", type=PROGRAM)
@library_option
@as_json
def show_history(program: str, library: Path, as_json: bool) -> None:
    """Show which program became current when, what was refused, and why; a damaged line is named at the end."""
    from dspy_reflex.runtime.history import history

    found = history(library, program)
    if as_json:
        print_json([move.model_dump(mode="json", by_alias=True) for move in found.moves])
    else:
        click.echo("\n".join(map(_line, found.moves)) or f"nothing has been decided about {program} in {library}")
    for where in found.damaged:
        click.echo(f"warning: {where} cannot be read and is passed over", err=True)


def _line(move: Move) -> str:
    by = f", by {move.by}" if move.by else ""
    partial = " (partial)" if move.partial else ""
    change = f"{move.before or 'none':<12} -> {move.after}{partial}"
    return f"{move.at:%Y-%m-%dT%H:%M:%SZ}  {move.action:<8}  {move.model}  {change}  {move.reason}{by}"


@command.command("rollback")
@click.argument("program", type=PROGRAM)
@click.option("--model", help="The model whose program it is. Default: the only one that has a previous program.")
@library_option
@click.option("--by", help="Who decides, for the history. Default: nobody is named.")
@as_json
def roll_back(program: str, model: str | None, library: Path, by: str | None, as_json: bool) -> None:
    """Make the program current again that was so before the present one."""
    from dspy_reflex.runtime.history import can_go_back, rollback

    models = [model] if model else can_go_back(library, program)
    if len(models) != 1:
        which = f"name one of {', '.join(models)} with --model" if models else "there is nothing to go back to"
        raise ProgramError(f"{library / program}: {which}; `dspy-reflex programs history {program}` shows the moves")
    move = rollback(library, program, models[0], by)
    if as_json:
        print_json(move.model_dump(mode="json", by_alias=True))
    else:
        click.echo(f"{program}@{move.after} is current for {move.model} again, instead of {move.before}")


def _read(path: Path) -> Artifact:
    from dspy_reflex.runtime.library import opened

    return opened(path)
