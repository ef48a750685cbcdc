"""`dspy-reflex doctor`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from dspy_reflex.cli.common import as_json, home_option, print_json, shown

EXIT_UNWELL = 1
MARKS = {"well": "ok", "note": "note", "wrong": "WRONG"}


@click.command("doctor")
@home_option
@as_json
def command(home: Path | None, as_json: bool) -> None:
    """Look whether store, recorder, spool, clock, disk and rule files are well; exit code 1 if something is wrong."""
    from dspy_reflex.api import Reflex

    with Reflex(home) as reflex:
        checks = reflex.doctor()
    if as_json:
        print_json({"checks": [asdict(one) for one in checks]})
    else:
        for one in checks:
            click.echo(f"{MARKS[one.state]:<6}{shown(one.name, 200)}: {shown(one.told, 500)}")
            for detail in one.details:
                click.echo(f"        {shown(detail, 500)}")
    if any(one.state == "wrong" for one in checks):
        raise SystemExit(EXIT_UNWELL)
