"""What `dspy-reflex diagnose` does without a FILE: it works on the store."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dspy_reflex.cli.common import EXIT_STOPPED, agents_of, given, print_json, shown, teller
from dspy_reflex.cli.diagnosing import print_distribution, print_table

if TYPE_CHECKING:
    from dspy_reflex.stages.diagnosing.stored import Stored

EVERY = 500
"""Diagnoses between two lines of progress."""
POLL_S = 3.0
"""How often what was recorded meanwhile is looked for."""
ROWS = 100
"""Diagnoses that are shown one by one."""


def diagnose_store(
    *, path: Path | None, days: float, since: datetime | None, agent: str | None, with_children: bool, watch: bool,
    fallback: str | None, max_usd_per_day: float | None, home: Path | None, concurrency: int, max_usd: float | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Diagnose what has no diagnosis yet, once or for as long as nobody stops it."""
    from dspy_reflex.api import Reflex

    with Reflex(home, lm=given("lm"), fallback=fallback, max_usd_per_day=max_usd_per_day) as reflex:
        agents = agents_of(reflex, agent, with_children=with_children)

        def once(spent_usd: float = 0.0) -> Stored:
            left_usd = None if max_usd is None else max(0.0, max_usd - spent_usd)
            return reflex.diagnose(
                days=days, since=since, agents=agents, program=path, max_usd=left_usd, concurrency=concurrency,
                tick=_progress(teller()),
            )  # fmt: skip

        if watch:
            _watch(once, as_json=as_json)
        else:
            _tell(once(), as_json=as_json)


def _tell(done: Stored, *, as_json: bool) -> None:
    _warn(done)
    if as_json:
        diagnoses = [{**one.diagnosis.model_dump(mode="json"), "again": one.again} for one in done.made]
        print_json({"diagnoses": diagnoses, **_costs(done)})
    elif done.made:
        _print(done)
    else:
        click.echo("nothing to diagnose" if not done.stopped else "nothing was diagnosed")
    if done.stopped:
        click.echo(f"stopped: {shown(done.stopped, 500)} What is left stays queued.", err=True)
        raise SystemExit(EXIT_STOPPED)


def _print(done: Stored) -> None:
    if len(done.made) > ROWS:
        click.echo(f"the last {ROWS} of {len(done.made):,}; `dspy-reflex failures list` shows more\n")
    last = done.made[-ROWS:]
    print_table([one.severity for one in last], [one.diagnosis for one in last])
    click.echo("")
    print_distribution([one.diagnosis for one in done.made])
    click.echo(f"\n{len(done.made):,} failures, {done.calls:,} questions, {_usd(done)}")


def _warn(done: Stored) -> None:
    if done.warning:
        click.echo(f"warning: {done.warning}", err=True)
    if again := sum(one.again for one in done.made):
        click.echo(
            f"warning: the model is out of reach; the fall-back diagnosed {again}, to be done again later", err=True
        )


def _watch(once: Callable[[float], Stored], *, as_json: bool) -> None:
    """Again and again until Ctrl-C, which is how it ends well; what was answered is in the store."""
    from dspy_reflex.stages.diagnosing.stored import Stored

    total, causes, reason = Stored(), Counter[str](), ""
    try:
        while total.reason != "interrupt":
            done = once(total.cost_usd or 0.0)
            causes.update(one.diagnosis.root_cause or "" for one in done.made)
            total = total.then(replace(done, made=()))
            if not as_json:
                _print_lines(done)
            if done.stopped and done.reason != reason:
                click.echo(f"waiting: {shown(done.stopped, 500)}", err=True)
            reason = done.reason
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        pass
    if as_json:
        print_json({"diagnosed": causes.total(), "causes": dict(causes), **_costs(total)})
    else:
        click.echo(f"{causes.total():,} failures, {total.calls:,} questions, {_usd(total)}")


def _print_lines(done: Stored) -> None:
    for one in done.made:
        said = one.diagnosis
        marks = ", needs review" * said.needs_review + ", fall-back" * one.again
        cause = f"{said.root_cause or '(no answer)'} ({said.confidence:.0%}{marks})"
        click.echo(f"{shown(said.failure_id)}  {one.severity}  {shown(one.agent_id, 30)}  {cause}")


def _costs(done: Stored) -> dict[str, Any]:
    names = ("calls", "input_tokens", "output_tokens", "cost_usd", "stopped", "reason", "warning")
    return {name: getattr(done, name) for name in names}


def _usd(done: Stored) -> str:
    return "of unknown price" if done.cost_usd is None else f"{done.cost_usd:.4f} USD"


def _progress(say: Callable[[str], None]) -> Callable[[int], None]:
    """A function that tells now and then how many diagnoses were made."""
    next_at = EVERY

    def tick(made: int) -> None:
        nonlocal next_at
        if made >= next_at:
            say(f"{made:,} diagnosed")
            next_at = made + EVERY

    return tick
