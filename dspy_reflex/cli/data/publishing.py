"""`dspy-reflex data publish`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dspy_reflex.cli.common import FILE, as_json, need_compile, print_json, taxonomy_option

if TYPE_CHECKING:
    from dspy_reflex.evalset.publishing.folder import Published


@click.command("publish")
@click.argument("path", type=FILE)
@click.option(
    "--about", type=FILE, required=True,
    help="TOML with title, licence, summary, made, labelled, splits, limits, and a table [fields].",
)  # fmt: skip
@click.option(
    "--out", type=FILE, required=True, help="New folder, or PATH itself: its README.md and splits are written anew."
)
@click.option("--push", metavar="OWNER/NAME", help="Also send it to the Hugging Face hub, after a question.")
@click.option("--public", is_flag=True, help="With --push: for everyone to read. Default: private.")
@click.option("--yes", is_flag=True, help="With --push: do not ask.")
@taxonomy_option
@as_json
def command(
    path: Path, about: Path, out: Path, push: str | None, public: bool, yes: bool, taxonomy: str, as_json: bool
) -> None:
    """Write the labelled failures in PATH as a folder that `datasets.load_dataset` reads, with a datasheet as its card.

    A set that `data validate` finds errors in is not published. The same rows and words give the same bytes. Nothing
    leaves this machine without --push.
    """
    if (public or yes) and not push:
        raise click.UsageError(f"--{'public' if public else 'yes'} says how to push; give --push OWNER/NAME, too")
    need_compile("data publish")
    from dspy_reflex.evalset.publishing.folder import publish
    from dspy_reflex.evalset.publishing.hub import check_name
    from dspy_reflex.taxonomies.load import load_taxonomy

    if push:
        check_name(push)
    done = publish(path, about, out, load_taxonomy(taxonomy))
    url = _pushed(done, push, public, yes) if push else None
    if as_json:
        found = {"out": str(out), "version": done.version, "rows": done.rows, "files": done.files, "pushed": url}
        print_json(found)
        return
    click.echo(f"{out}: " + ", ".join(f"{name} {count}" for name, count in done.rows.items()) + f"; {done.version}")
    if url:
        click.echo(f"pushed: {url}")


def _pushed(done: Published, repo: str, public: bool, yes: bool) -> str | None:
    """The address it was sent to; None if the person at the keyboard says no."""
    from dspy_reflex.evalset.publishing.hub import push

    click.echo(f"to {repo} on the Hugging Face hub, {'public' if public else 'private'}:", err=True)
    for name, size in done.files.items():
        click.echo(f"  {name:<24}{size:>12,} bytes", err=True)
    if not yes and not click.confirm("send it?", err=True):
        click.echo("nothing was sent", err=True)
        return None
    return push(done, repo, public=public)
