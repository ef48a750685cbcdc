"""Options and output that several commands share."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from datetime import UTC, datetime
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from dspy_reflex.errors import MissingExtraError
from dspy_reflex.untrusted import neutralise

if TYPE_CHECKING:
    from rich.live import Live

    from dspy_reflex.api import Reflex
    from dspy_reflex.records.failure import Failure

COMPILE_PACKAGES = ("dspy", "jinja2", "matplotlib", "optuna", "scipy", "sklearn")
"""What the compile wing imports of its extra."""

EXIT_STOPPED = 1
"""Work is left, because the model is out of reach or the budget is spent; what is done was kept."""

F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(path_type=Path)
PROGRAM = click.Choice(["root_cause", "rule"])

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout and nothing else there.")
lm_option = click.option(
    "--lm", default=lambda: os.environ.get("REFLEX_LM", "offline"), show_default="REFLEX_LM, else offline",
    help="Model: offline, anthropic/…, openai/…, ollama_chat/…, hosted_vllm/….",
)  # fmt: skip
taxonomy_option = click.option(
    "--taxonomy",
    default="six",
    show_default=True,
    help="Label set: six, agentrx, agenterrorbench, mast, trail, whowhen, or a TOML file.",
)
skip_bad_option = click.option(
    "--skip-bad", is_flag=True, help="Leave out lines that cannot be used, and say which, instead of stopping."
)
concurrency_option = click.option(
    "--concurrency", type=click.IntRange(1, 256), default=1, show_default=True, help="Questions at a time."
)


home_option = click.option(
    "--home", type=FILE, help="Folder of the workspace. Default: REFLEX_HOME, else ~/.dspy-reflex."
)


def _login_name() -> str:
    """Who is logged in; nobody where the system does not say."""
    try:
        return getuser()
    except (ImportError, KeyError, OSError):
        return ""


by_option = click.option("--by", default=_login_name, show_default="your login name", help="Who decides: a person.")
reason_option = click.option("--reason", default="", help="Why.")


def agent_options(function: F) -> F:
    """`--agent NAME` and `--with-children`."""
    children = click.option("--with-children", is_flag=True, help="Also its sub-agents, and theirs.")
    return click.option("--agent", help="Only this agent.")(children(function))


library_option = click.option(
    "--library", type=FILE, default=Path("programs"), show_default=True, help="Folder of <program>/<version>.json."
)


def datasets_option(function: F) -> F:
    """`--dataset`, repeatable; the eval set that comes with the package by default."""
    return click.option(
        "--dataset", "datasets", type=FILE, multiple=True,
        help="Folder with train/val/test.jsonl, or one JSON Lines file; repeatable. Default: the bundled eval set.",
    )(function)  # fmt: skip


def leave_out_option(function: F) -> F:
    """`--leave-out FIELD=VALUE`, repeatable."""
    return click.option(
        "--leave-out", multiple=True, metavar="FIELD=VALUE", callback=_pairs,
        help="Leave out rows such as source=NAME, and every row that shares a group with one; repeatable.",
    )(function)  # fmt: skip


def _pairs(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = [value.partition("=") for value in values]
    if wrong := [value for value, (name, sign, _) in zip(values, pairs, strict=True) if not (name and sign)]:
        raise click.BadParameter(f"{wrong[0]!r} is not FIELD=VALUE, such as source=trail/gaia")
    return tuple((name, value) for name, _, value in pairs)


def default_datasets(given: tuple[Path, ...]) -> tuple[Path, ...]:
    """The data sets named, or the bundled one."""
    from dspy_reflex.runtime.library import bundled

    return given or (bundled("datasets") / "failures",)


def teller() -> Callable[[str], None]:
    """A function that writes lines to stderr as it is now, even while a library has redirected it."""
    stream = sys.stderr
    return lambda line: click.echo(line, file=stream)


class Screen:
    """stderr as it is now, even while a library has redirected it; on a terminal with a line that is kept up to date."""

    def __init__(self) -> None:
        """Take hold of stderr."""
        self._stream = sys.stderr
        self._live: Live | None = None

    def say(self, line: str) -> None:
        """One line for people."""
        if self._live:
            self._live.console.print(line, markup=False, highlight=False)
        else:
            click.echo(line, file=self._stream)

    @contextmanager
    def watch(self, status: Callable[[], str]) -> Generator[None]:
        """Show what `status` tells, below the lines that are said, as long as this is open."""
        if not self._stream.isatty():
            yield
            return
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        console = Console(file=self._stream)
        with Live(
            console=console,
            get_renderable=lambda: Text(status(), style="dim"),
            redirect_stdout=False,
            redirect_stderr=False,
            transient=True,
        ) as self._live:
            yield
        self._live = None


def read_failures(file: Path, say: Callable[[str], None], *, skip_bad: bool) -> list[Failure]:
    """The failures of a file or of stdin; with `skip_bad` the lines that cannot be used are said and left out."""
    from dspy_reflex.evalset.load import load_failures
    from dspy_reflex.evalset.problems import Problems

    skipped = Problems()
    failures = load_failures(file, sys.stdin.buffer, skipped if skip_bad else None)
    for line in skipped.in_order:
        say(f"warning: skipped {line}")
    if skipped.found:
        say(f"warning: {skipped.places} lines were skipped")
    return failures


def given(name: str) -> Any:
    """The value of an option of this command; None if nobody gave it, so that settings decide."""
    context = click.get_current_context()
    return context.params[name] if context.get_parameter_source(name) is ParameterSource.COMMANDLINE else None


def refuse(names: Iterable[str], where: str) -> None:
    """Stop if one of these options was given: it goes somewhere else."""
    flags = {each.name: each.opts[0] for each in click.get_current_context().command.params}
    for name in names:
        if given(name) is not None:
            raise click.UsageError(f"{flags[name]} goes {where}")


def agents_of(workspace: Reflex, agent: str | None, *, with_children: bool) -> tuple[str, ...] | None:
    """The agents that `--agent` and `--with-children` mean; None is all."""
    if agent is None:
        if with_children:
            raise click.UsageError("--with-children goes with --agent")
        return None
    from dspy_reflex.store.outcomes import family

    if not with_children:
        return (agent,)
    with workspace.store.read() as connection:
        return family(connection, agent)


def print_json(value: Any) -> None:
    """One JSON document on stdout; on a terminal in ASCII, as what failures hold could move its cursor or turn its text."""
    click.echo(json.dumps(value, ensure_ascii=sys.stdout.isatty(), indent=1))


class Moment(click.ParamType[datetime]):
    """A day or a time such as 2026-03-01 or 2026-03-01T12:00+01:00; UTC where it has no zone."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Read what was typed."""
        try:
            at = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
        except ValueError:
            self.fail(f"{value!r} is no time such as 2026-03-01 or 2026-03-01T12:00+01:00", param, ctx)
        return at if at.tzinfo else at.replace(tzinfo=UTC)


since_option = click.option("--since", type=Moment(), help="Only what happened since, such as 2026-03-01; UTC.")


def shown(text: object, limit: int = 60) -> str:
    """The beginning of a text by others on one line, safe to show."""
    line = " ".join(neutralise(str(text)).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}\u2026"


def need_compile(what: str) -> None:
    """Stop with one sentence if the compile wing's packages are missing.

    Raises:
        MissingExtraError: They are.
    """
    from importlib.util import find_spec

    if any(find_spec(package) is None for package in COMPILE_PACKAGES):
        raise MissingExtraError(what, "compile")
