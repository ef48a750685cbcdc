"""`dspy-reflex export`."""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dspy_reflex.cli.common import FILE, Moment, as_json, home_option, print_json
from dspy_reflex.errors import EXIT_BAD_INPUT
from dspy_reflex.finetune.formats.registry import NAMES
from dspy_reflex.finetune.row import TASKS

if TYPE_CHECKING:
    from dspy_reflex.finetune.folder import Written
    from dspy_reflex.finetune.plan import Plan

NOTHING = (
    "nothing to export: no rule is approved and no cause was named by a person; `dspy-reflex review` is the way there"
)
ALL_LEFT_OUT = "nothing to export: everything was left out"
SHARE = click.FloatRange(0, 1)


class _Split(click.ParamType[float | datetime]):
    """A share such as 0.1, or a time such as 2026-03-01."""

    name = "share or time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | datetime:
        """Read what was typed."""
        try:
            share = float(value)
        except ValueError:
            return Moment().convert(value, param, ctx)
        return SHARE.convert(share, param, ctx)


def _licence(_: click.Context, __: click.Parameter, value: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", value):
        raise click.BadParameter(f"{value!r} is no licence as the hub spells it, such as mit, apache-2.0 or other")
    return value


format_option = click.option(
    "--format", "form", type=click.Choice(NAMES), default="trl", show_default=True, help="What the trainer takes."
)


@click.group("export", invoke_without_command=True)
@format_option
@click.option(
    "--out", type=FILE, default=Path("training"), show_default=True, help="Folder; an earlier export is replaced."
)
@click.option(
    "--task", "tasks", type=click.Choice(TASKS), multiple=True, help="What is to be learned; repeatable. Default: all."
)
@click.option("--since", type=Moment(), help="Only rules decided on, and causes named, since then; UTC.")
@click.option(
    "--rule", "--rules", "rules", metavar="ID", multiple=True, help="Only this rule and its causes; repeatable."
)
@click.option(
    "--split", type=_Split(), default=0.1, show_default=True,
    help="What is for validation: a share of families, or those that began since a time such as 2026-03-01.",
)  # fmt: skip
@click.option(
    "--without-rule", type=SHARE, default=0.5, show_default=True, help="Share of rows whose prompt leaves the rule out."
)
@click.option(
    "--controls", type=SHARE, default=0.2, show_default=True,
    help="Share of corrections shown once more under a rule that is not about them.",
)  # fmt: skip
@click.option(
    "--eval-set", "eval_sets", type=FILE, multiple=True,
    help="Folder whose val and test failures no row may hold; repeatable. The bundled one always counts.",
)  # fmt: skip
@click.option("--new-since", type=FILE, help="Another export: leave out the rows that it has.")
@click.option(
    "--licence", default="other", show_default=True, callback=_licence, help="Of the rows, as the hub spells it."
)
@click.option("--dry-run", is_flag=True, help="Count, and say what would be left out and why.")
@click.option(
    "--push-to-hub", "repo", metavar="OWNER/NAME", help="Also send it to the hub, after a question: a private data set."
)
@click.option("--yes", is_flag=True, help="With --push-to-hub: do not ask.")
@home_option
@as_json
@click.pass_context
def command(context: click.Context, **said: Any) -> None:
    """Write approved rules, with their failures and corrections, as training rows for fine-tuning.

    The folder is one that `datasets.load_dataset` reads. Nothing leaves this machine without --push-to-hub.
    """
    if context.invoked_subcommand:
        return
    from dspy_reflex.api import Reflex

    _check_push(said)
    out, dry_run = said["out"], said["dry_run"]
    with Reflex(said["home"]) as reflex:
        found = reflex.export(
            out, form=said["form"], plan=_plan(said), eval_sets=said["eval_sets"], new_since=said["new_since"],
            licence=said["licence"], dry_run=dry_run,
        )  # fmt: skip
    for warning in found.warnings:
        click.echo(f"warning: {warning}", err=True)
    url = _pushed(out, said["repo"], found, yes=said["yes"]) if said["repo"] and found.contents.rows else None
    if said["as_json"]:
        print_json({"out": str(out), "format": said["form"], "dry_run": dry_run, **_plain(found), "pushed": url})
    else:
        _print(found, out, dry_run=dry_run)
        click.echo(f"pushed: {url}") if url else None


@command.command("check")
@click.argument("file", type=FILE)
@format_option
@as_json
def check(file: Path, form: str, as_json: bool) -> None:
    """Look whether every row of FILE is what a format wants; list those that are not, and leave with exit code 2."""
    from dspy_reflex.finetune.check import check
    from dspy_reflex.finetune.formats.registry import format_of

    rows, problems = check(file, format_of(form))
    if as_json:
        print_json({"rows": rows, "problems": problems})
    else:
        for problem in problems:
            click.echo(problem)
        click.echo(f"{rows:,} rows, {len(problems):,} that {form} would not take")
    if problems:
        raise SystemExit(EXIT_BAD_INPUT)


def _check_push(said: dict[str, Any]) -> None:
    """Look at what was said of pushing before anything is done."""
    if said["yes"] and not said["repo"]:
        raise click.UsageError("--yes says how to push; give --push-to-hub OWNER/NAME, too")
    if said["repo"] and said["dry_run"]:
        raise click.UsageError("--dry-run sends nothing; leave it or --push-to-hub out")
    if said["repo"]:
        from dspy_reflex.evalset.publishing.hub import check_name

        check_name(said["repo"])


def _plan(said: dict[str, Any]) -> Plan:
    from dspy_reflex.finetune.plan import Plan
    from dspy_reflex.finetune.rows.behave import Shares

    return Plan(
        tasks=said["tasks"] or TASKS, since=said["since"], rules=said["rules"] or None, split=said["split"],
        shares=Shares(said["without_rule"], said["controls"]),
    )  # fmt: skip


def _print(found: Written, out: Path, *, dry_run: bool) -> None:
    told = found.contents
    if not told.rows:
        click.echo(ALL_LEFT_OUT if told.left_out else NOTHING)
    for where, n in told.rows.items():
        click.echo(f"{n:>9,}  {where}")
    for why, n in told.left_out.items():
        click.echo(f"{n:>9,}  left out: {why}")
    for kind, n in told.redacted.items():
        click.echo(f"{n:>9,}  taken out of texts: {kind}")
    for one in told.withdrawn:
        click.echo(f"withdrawn since an earlier export: {one}")
    if told.rows or found.gone:
        done = "would be" if dry_run else "are"
        click.echo(f"{out}: {found.added:,} rows {done} new, {found.gone:,} gone; {len(found.rules):,} rules")


def _pushed(out: Path, repo: str, found: Written, *, yes: bool) -> str | None:
    """The address it was sent to; None if the person at the keyboard says no."""
    from dspy_reflex.evalset.publishing.folder import Published
    from dspy_reflex.evalset.publishing.hub import push
    from dspy_reflex.finetune.folder import MANIFEST
    from dspy_reflex.finetune.sink import sha256_of

    told = found.contents
    files = {path.relative_to(out).as_posix(): path.stat().st_size for path in sorted(out.rglob("*")) if path.is_file()}
    click.echo(f"to {repo} on the Hugging Face hub, private:", err=True)
    for where, n in told.rows.items():
        click.echo(f"  {n:>9,} rows  {where}", err=True)
    for kind, n in told.redacted.items():
        click.echo(f"  {n:>9,} taken out of texts: {kind}", err=True)
    click.echo(f"  {len(files)} files, {sum(files.values()):,} bytes", err=True)
    if not yes and not click.confirm("send it?", err=True):
        click.echo("nothing was sent", err=True)
        return None
    return push(Published(out, sha256_of(out / MANIFEST)[:12], told.rows, files), repo, public=False)


def _plain(found: Written) -> dict[str, Any]:
    told = asdict(found)
    return {**told.pop("contents"), **told}
