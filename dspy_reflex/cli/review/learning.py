"""`dspy-reflex review label` and `export`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from dspy_reflex.cli.common import FILE, as_json, by_option, home_option, print_json, reason_option, taxonomy_option
from dspy_reflex.untrusted import neutralise


@click.command("label")
@click.argument("failure_id", metavar="FAILURE_ID")
@click.option("--cause", required=True, help="Its root cause, a label of the taxonomy.")
@by_option
@reason_option
@taxonomy_option
@home_option
@as_json
def label(
    failure_id: str, cause: str, by: str, reason: str, taxonomy: str, home: Path | None, as_json: bool
) -> None:  # fmt: skip
    """Say why a failure happened; no program says otherwise afterwards."""
    from dspy_reflex.api import Reflex

    with Reflex(home) as workspace:
        said = workspace.label(failure_id, cause, by=by, reason=reason, taxonomy=taxonomy)
    if as_json:
        print_json(said.model_dump(mode="json"))
    else:
        click.echo(neutralise(f"{said.failure_id} is {said.root_cause}, says {said.model}"))


@click.command("export")
@click.option("--out", type=FILE, required=True, help="JSON Lines file, written anew.")
@home_option
@as_json
def export(out: Path, home: Path | None, as_json: bool) -> None:
    """Write what people said of diagnoses and rules as labelled failures: `compile --dataset` takes the file.

    What a policy approved is not among them, nor what was rejected or reverted.
    """
    from dspy_reflex.api import Reflex
    from dspy_reflex.files import write_atomic

    with Reflex(home) as workspace:
        rows = workspace.reviewed_rows()
    write_atomic(out, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
    rules = sum("reference_rule" in row for row in rows)
    if as_json:
        print_json({"out": str(out), "rows": len(rows), "rules": rules})
    else:
        click.echo(f"{out}: {len(rows)} labelled failures, {rules} with a rule")
