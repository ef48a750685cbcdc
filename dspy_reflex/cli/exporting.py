"""`dspy-reflex export`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dspy_reflex.cli.common import FILE, as_json, home_option, print_json
from dspy_reflex.errors import EXIT_BAD_INPUT

if TYPE_CHECKING:
    from dspy_reflex.finetune.plan import Plan
    from dspy_reflex.stages.export import Exported

NOTHING = (
    "nothing to export: no rule is approved and no cause was named by a person; `dspy-reflex review` is the way there"
)
FORMATS = (
    "trl", "trl_messages", "trl_text", "axolotl", "llama_factory", "bedrock", "openai", "sharegpt", "alpaca", "dspy", "parquet",
)  # fmt: skip
TASKS = ("behave", "classify", "propose", "self_edit")

format_option = click.option(
    "--format", "form", type=click.Choice(FORMATS), default="trl", show_default=True, help="What the trainer takes."
)
SHARE = click.FloatRange(0, 1)


@click.group("export", invoke_without_command=True)
@format_option
@click.option(
    "--out", type=FILE, default=Path("training"), show_default=True, help="Folder; an earlier export is replaced."
)
@click.option(
    "--task", "tasks", type=click.Choice(TASKS), multiple=True, help="What is to be learned; repeatable. Default: all."
)
@click.option("--since", type=click.DateTime(), help="Only rules decided on, and causes named, since then (UTC).")
@click.option("--rule", "rules", multiple=True, help="Only this proposal; repeatable.")
@click.option("--validation", type=SHARE, default=0.1, show_default=True, help="Share of families for validation.")
@click.option(
    "--validation-from", type=click.DateTime(), help="Families that began then or later are for validation (UTC)."
)
@click.option(
    "--without-rule", type=SHARE, default=0.5, show_default=True, help="Share of rows whose prompt leaves the rule out."
)
@click.option(
    "--controls",
    type=SHARE,
    default=0.2,
    show_default=True,
    help="Share shown once more under a rule that is not theirs.",
)
@click.option(
    "--eval-set",
    "eval_sets",
    type=FILE,
    multiple=True,
    help="Folder whose val and test failures no row may hold. The bundled one always counts.",
)
@click.option("--new-since", type=FILE, help="Another export: leave out the rows that it has.")
@click.option("--licence", default="other", show_default=True, help="Licence of the rows, as the hub spells it.")
@click.option("--dry-run", is_flag=True, help="Count, and say what would be left out and why.")
@click.option("--push-to-hub", "repo", metavar="OWNER/NAME", help="Send it to the hub, as a private data set.")
@home_option
@as_json
@click.pass_context
def command(context: click.Context, **said: Any) -> None:
    """Write approved rules, with their failures and corrections, as training rows for fine-tuning."""
    if context.invoked_subcommand:
        return
    from dspy_reflex.api import Reflex

    form, out, dry_run, repo = said["form"], said["out"], said["dry_run"], said["repo"]
    if repo:
        from dspy_reflex.evalset.publishing.hub import check_name

        check_name(repo)
    with Reflex(said["home"]) as reflex:
        found = reflex.export(
            out, form=form, plan=_plan(said), eval_sets=said["eval_sets"], new_since=said["new_since"],
            licence=said["licence"], dry_run=dry_run,
        )  # fmt: skip
    if said["as_json"]:
        print_json({"out": str(out), "format": form, "dry_run": dry_run, **_plain(found)})
    else:
        _print(found, out, dry_run=dry_run)
    if repo and found.written.rows and not dry_run:
        _push(out, repo, found)


@command.command("check")
@click.argument("file", type=FILE)
@format_option
@as_json
def check(file: Path, form: str, as_json: bool) -> None:
    """Look whether every row of FILE is what a format wants; list those that are not, and leave with exit code 2."""
    from dspy_reflex.finetune.formats.registry import FORMATS
    from dspy_reflex.stages.export import check

    rows, problems = check(file, FORMATS[form])
    if as_json:
        print_json({"rows": rows, "problems": problems})
    else:
        for problem in problems:
            click.echo(problem)
        click.echo(f"{rows} rows, {len(problems)} that a trainer would not take")
    if problems:
        raise SystemExit(EXIT_BAD_INPUT)


def _plan(said: dict[str, Any]) -> Plan:
    from dspy_reflex.finetune.plan import Plan
    from dspy_reflex.finetune.rows.behave import Shares

    return Plan(
        tasks=said["tasks"] or TASKS, since=_utc(said["since"]), rules=said["rules"] or None,
        validation=said["validation"], validation_from=_utc(said["validation_from"]),
        shares=Shares(said["without_rule"], said["controls"]),
    )  # fmt: skip


def _print(found: Exported, out: Path, *, dry_run: bool) -> None:
    written = found.written
    if not written.rows:
        click.echo(NOTHING)
    for where, n in written.rows.items():
        click.echo(f"{n:>9,}  {where}")
    for why, n in written.left_out.items():
        click.echo(f"{n:>9,}  left out: {why}")
    for one in found.withdrawn:
        click.echo(f"withdrawn since the last export: {one}")
    for warning in written.warnings:
        click.echo(f"warning: {warning}", err=True)
    if written.rows and not dry_run:
        click.echo(f"{out}: {written.added} rows new, {written.gone} gone; {len(found.rules)} rules")


def _push(out: Path, repo: str, found: Exported) -> None:
    from dspy_reflex.evalset.publishing.folder import Published
    from dspy_reflex.evalset.publishing.hub import push
    from dspy_reflex.finetune.folder import MANIFEST
    from dspy_reflex.finetune.sink import sha256_of

    files = {path.relative_to(out).as_posix(): path.stat().st_size for path in sorted(out.rglob("*")) if path.is_file()}
    rows = found.written.rows
    click.echo(f"sending {sum(rows.values()):,} rows in {len(files)} files to {repo}, as a private data set", err=True)
    version = sha256_of(out / MANIFEST)[:12]
    click.echo(push(Published(out, version, rows, files), repo, public=False), err=True)


def _plain(found: Exported) -> dict[str, Any]:
    return {**asdict(found.written), "rules": found.rules, "withdrawn": found.withdrawn}


def _utc(at: datetime | None) -> datetime | None:
    from datetime import UTC

    return at.replace(tzinfo=UTC) if at else None
