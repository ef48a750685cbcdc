"""Patches on the screen, and as JSON."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from dspy_reflex.cli.review.printing import print_lines
from dspy_reflex.errors import HandEditError
from dspy_reflex.untrusted import neutralise

if TYPE_CHECKING:
    from dspy_reflex.stages.patching.apply import Applied
    from dspy_reflex.stages.patching.revert import Reverted
    from dspy_reflex.targets.files import Recovered


def as_object(done: Applied | Reverted) -> dict[str, Any]:
    """Patches and what they changed."""
    return {"patches": [one.model_dump(mode="json") for one in done.patches], "diff": done.diff}


def print_patches(done: Applied | Reverted, *, dry_run: bool) -> None:
    """What was done; on a dry run, what would be."""
    if dry_run:
        print_lines(neutralise(done.diff))
        return
    for one in done.patches:
        click.echo(neutralise(f"{one.action} {one.proposal_id}  {one.file}  {one.id}"))


def say_recovered(recovered: Recovered | None) -> None:
    """What a process that died had left behind."""
    if recovered:
        what = "finished" if recovered.finished else "undone"
        click.echo(f"{recovered.patch_id} had been left half done by a process that died; it is {what} now", err=True)


@contextmanager
def hand_edits_shown() -> Generator[None]:
    """Show on stderr what somebody changed by hand, before the sentence that refuses it."""
    try:
        yield
    except HandEditError as error:
        print_lines(neutralise(error.diff), stderr=True)
        raise
