"""`dspy-reflex data validate`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from dspy_reflex.cli.common import FILE, as_json, need_compile, print_json, taxonomy_option
from dspy_reflex.errors import EXIT_BAD_INPUT


@click.command("validate")
@click.argument("path", type=FILE)
@taxonomy_option
@as_json
def command(path: Path, taxonomy: str, as_json: bool) -> None:
    """Say what is wrong or suspicious with the labelled failures in PATH, a folder or a file.

    Errors (exit code 2): lines that cannot be used, two rows with one id, a family or a near-copy in two splits,
    evidence that is not in the text, secrets, a split that is not what the manifest says. Warnings: labels named in a
    text, absent and rare labels, near-copies in one split, personal data, circumstances that give the label away.
    """
    need_compile("data validate")
    from dspy_reflex.evalset.checks.run import validate
    from dspy_reflex.taxonomies.load import load_taxonomy

    evalset, found = validate(path, load_taxonomy(taxonomy))
    errors = sum(one.level == "error" for one in found)
    rows = {name: len(rows) for name, rows in evalset.splits.items()}
    if as_json:
        print_json({"dataset": str(path), "rows": rows, "errors": errors, "findings": [asdict(one) for one in found]})
    else:
        for one in found:
            click.echo(f"{one.level}: {one.where}: {one.text} [{one.check}]")
        shown = ", ".join(f"{name} {count}" for name, count in rows.items())
        click.echo(f"{path}: {shown}; {errors} errors, {len(found) - errors} warnings")
    if errors:
        raise SystemExit(EXIT_BAD_INPUT)
