"""`dspy-reflex review auto`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspy_reflex.cli.common import as_json, home_option, print_json
from dspy_reflex.untrusted import neutralise

if TYPE_CHECKING:
    from dspy_reflex.api import Reflex
    from dspy_reflex.stages.reviewing.policy import Decision


@click.command("auto")
@home_option
@as_json
def command(home: Path | None, as_json: bool) -> None:
    """Hold pending proposals against the policies of the settings. There are none unless somebody wrote them down.

    A policy never approves a SOUL rule, nor one on a confidence that is not calibrated.
    """
    from dspy_reflex.api import Reflex

    with Reflex(home) as workspace:
        made = decided(workspace)
    if as_json:
        print_json({"decisions": [asdict(one) for one in made]})


def decided(workspace: Reflex) -> list[Decision]:
    """What the policies decide; each decision is said on stderr."""
    if not workspace.settings.policies:
        click.echo("there is no policy in the settings, so nothing is approved without a person", err=True)
    made = workspace.auto_review()
    for one in made:
        what = "approved by" if one.approved else "left to people by"
        click.echo(neutralise(f"{one.proposal_id} {what} policy {one.policy}: {one.why}"), err=True)
    return made
