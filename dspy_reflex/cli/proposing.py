"""`dspy-reflex propose`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dspy_reflex.cli.common import (
    FILE,
    agent_options,
    as_json,
    concurrency_option,
    home_option,
    lm_option,
    print_json,
    read_failures,
    refuse,
    skip_bad_option,
    teller,
)  # fmt: skip
from dspy_reflex.cli.diagnosing import costs, progress, stop_if_stopped
from dspy_reflex.cli.filing import file_from_store
from dspy_reflex.errors import ConfigError, RefusalError
from dspy_reflex.untrusted import neutralise

if TYPE_CHECKING:
    from dspy_reflex.records.failure import Failure
    from dspy_reflex.records.proposal import Proposal
    from dspy_reflex.runtime.program import RuleProgram
    from dspy_reflex.stages.asking.batch import Batch, Meter

RULE_FILES = {"SOUL": "SOUL.md", "AGENTS": "AGENTS.md", "TOOLS": "TOOLS.md"}
"""Component to the file its rules live in, under the agent's folder."""
ONLY_WITH_FILE = ("cause_program", "skip_bad")
ONLY_WITHOUT_FILE = ("days", "include_unsure", "auto", "agent", "with_children", "home")


@click.command("propose")
@click.argument("file", type=FILE, required=False)
@click.option("--program", "path", type=FILE, help="Rule program. Default: the current one for the model.")
@click.option("--cause-program", type=FILE, help="Root-cause program, for failures without a root_cause of their own.")
@click.option(
    "--base-dir", type=FILE, default=lambda: os.environ.get("REFLEX_BASE_DIR", "."), show_default="REFLEX_BASE_DIR, else .",
    help="Folder with the agent's SOUL.md, AGENTS.md and TOOLS.md.",
)  # fmt: skip
@click.option(
    "--days", type=click.FloatRange(min=0), default=30.0, show_default=True, help="How far back failures count."
)
@click.option("--include-unsure", is_flag=True, help="Count failures whose diagnosis a person should look at first.")
@click.option("--auto", is_flag=True, help="Then let the policies of the settings decide, as `review auto`.")
@agent_options
@home_option
@lm_option
@concurrency_option
@click.option("--max-usd", type=click.FloatRange(min=0), help="Stop when this much is spent.")
@skip_bad_option
@as_json
def command(
    file: Path | None, path: Path | None, cause_program: Path | None, base_dir: str | Path, days: float,
    include_unsure: bool, auto: bool, agent: str | None, with_children: bool, home: Path | None, lm: str,
    concurrency: int, max_usd: float | None, skip_bad: bool, as_json: bool,
) -> None:  # fmt: skip
    """Propose a rule for each root cause and symptom, as a diff. No rule file is changed.

    Without FILE, a rule is filed for review against what enough diagnosed failures of the store have in common, unless a
    rule answers it already or one was rejected. With FILE (JSON Lines; - for stdin) nothing is kept: a failure's own
    `root_cause` is used where it has one, the others are diagnosed first.
    """
    if file is None:
        refuse(ONLY_WITH_FILE, "with a FILE")
        file_from_store(
            home, path, days, agent, with_children=with_children, include_unsure=include_unsure, auto=auto,
            concurrency=concurrency, max_usd=max_usd, as_json=as_json,
        )  # fmt: skip
    else:
        refuse(ONLY_WITHOUT_FILE, "without a FILE")
        _for_file(
            file, path, cause_program, Path(base_dir), lm, concurrency, max_usd, skip_bad=skip_bad, as_json=as_json
        )


def _for_file(
    file: Path, path: Path | None, cause_program: Path | None, base_dir: Path, lm: str, concurrency: int,
    max_usd: float | None, *, skip_bad: bool, as_json: bool,
) -> None:  # fmt: skip
    """Propose for the failures of a file, and keep nothing."""
    from dspy_reflex.runtime.program import load_program, symptom_of_failure
    from dspy_reflex.stages.asking.batch import Meter
    from dspy_reflex.stages.proposing.propose import grouped, merged, propose

    say = teller()
    program = load_program("rule", path=path, lm=lm)
    if program.warning:
        say(f"warning: {program.warning}")
    failures = read_failures(file, say, skip_bad=skip_bad)
    files = _rule_files(base_dir)
    meter = Meter(program.model.name, max_usd)
    causes, stopped = _causes(failures, cause_program, program, concurrency, meter)
    for failure, cause in zip(failures, causes, strict=True):
        if cause is None:
            say(f"warning: {neutralise(failure.id) or 'a failure'} got no root cause and is left out")
    groups = grouped(failures, causes, [symptom_of_failure(failure) for failure in failures])
    say(f"{len(failures)} failures, {len(groups)} groups by cause and symptom")
    batch = propose(
        program, groups, _existing(files), meter=meter, concurrency=concurrency, tick=progress(say, len(groups))
    )
    ended = stopped or batch
    for one in batch.done:
        if isinstance(one, RefusalError):
            say(f"warning: {one}")
    proposals = merged([one for one in batch.done if not isinstance(one, RefusalError)])
    shown = [(one, _diff(one, files)) for one in proposals]
    if as_json:
        rows = [{**one.model_dump(mode="json"), "file": RULE_FILES[one.component], "diff": text} for one, text in shown]
        print_json({"proposals": rows, **costs(batch), "left": ended.left, "stopped": ended.stopped})
    else:
        for one, text in shown:
            _print(one, text)
    stop_if_stopped(ended)


def _causes(
    failures: Sequence[Failure], path: Path | None, rule: RuleProgram, concurrency: int, meter: Meter
) -> tuple[list[str | None], Batch[Any] | None]:
    """The cause of each failure, its own if it has one, and the batch that diagnosed the others if it was stopped."""
    from dspy_reflex.runtime.program import load_program
    from dspy_reflex.stages.asking.batch import run_batch

    program = load_program("root_cause", path=path, lm=rule.model.name, labels=rule.artifact.labels)
    own = [(failure.model_extra or {}).get("root_cause") for failure in failures]
    asked = [place for place, cause in enumerate(own) if not isinstance(cause, str)]
    batch = run_batch([failures[place] for place in asked], program.explained, meter=meter, concurrency=concurrency)
    causes = [cause if isinstance(cause, str) else None for cause in own]
    for place, found in zip(batch.answered, batch.done, strict=True):
        causes[asked[place]] = found.root_cause
    return causes, batch if batch.stopped else None


def _rule_files(folder: Path) -> dict[str, bytes | None]:
    """The content of each rule file; None for one that is not there yet."""
    from dspy_reflex.targets.disk import read

    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; --base-dir is where the agent's rule files are")
    return {component: read(folder / name) for component, name in RULE_FILES.items()}


def _existing(files: dict[str, bytes | None]) -> list[str]:
    from dspy_reflex.targets.markdown import decode, rules_in

    return [
        rule for component, content in files.items() for rule in rules_in(decode(content or b"", RULE_FILES[component]))
    ]


def _diff(proposal: Proposal, files: dict[str, bytes | None]) -> str:
    """What applying the proposal today would change; nothing where its rule is there already."""
    from dspy_reflex.clock import now
    from dspy_reflex.targets.block import rules_of
    from dspy_reflex.targets.diff import diff
    from dspy_reflex.targets.edit import add, apply_edits
    from dspy_reflex.targets.rule import RuleLine

    name, before = RULE_FILES[proposal.component], files[proposal.component]
    if proposal.id in {rule.rule_id for rule in rules_of(before, name)}:
        return ""
    after = apply_edits(before, [add(RuleLine(proposal.id, proposal.rule, now().date()))], name)
    return diff(name, before, after)


def _print(proposal: Proposal, diff: str) -> None:
    click.echo(f"{proposal.id}  {proposal.root_cause}  {neutralise(', '.join(proposal.failure_ids))}")
    click.echo(f"  why    {neutralise(proposal.rationale)}")
    click.echo(f"  by     {proposal.program} on {proposal.model}; {proposal.score}")
    click.echo(f"\n{diff}")
