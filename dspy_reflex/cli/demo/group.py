"""`dspy-reflex demo`."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from importlib.resources import as_file, files
from pathlib import Path

import click

from dspy_reflex.cli.common import FILE, as_json, print_json
from dspy_reflex.errors import ConfigError

WHO = "demo"
HOLDS = {"REFLEX_HOME": "home", "REFLEX_BASE_DIR": "agent"}
"""Environment variable to the folder of the demo that it names."""
OTHERS = ("REFLEX_DATABASE_URL", "REFLEX_LM")
"""Variables of the user's that are not to hold in the demo."""


@click.group("demo")
def command() -> None:
    """Try the loop out, offline, on failures that come with the package."""


@command.command("loop")
@click.option("--dir", "folder", type=FILE, help="Folder to work in, and to keep. Default: one that is removed.")
@as_json
def loop(folder: Path | None, as_json: bool) -> None:
    """Log ten failures, diagnose, propose, approve, apply and revert: each step as the command that you would type.

    The demo approves what it is shown, which nobody should.
    """
    if folder and folder.exists():
        raise ConfigError(f"{folder}: is there already; give the demo a new folder")
    with ExitStack() as stack:
        place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="reflex-demo-")))
        stack.enter_context(_environment(place))
        if as_json:
            stack.enter_context(redirect_stdout(io.StringIO()))
        told = _run(place)
    if as_json:
        print_json(told)
    if not told["restored"]:
        raise SystemExit(1)


def _run(place: Path) -> dict[str, object]:
    with as_file(files("dspy_reflex.cli.demo")) as source:
        shutil.copytree(source / "agent", place / "agent")
        _type(["failures", "import", str(source / "failures.jsonl")])
    before = _contents(place / "agent")
    _type(["diagnose"])
    _type(["propose"])
    ids = _pending()
    for one in ids:
        _type(["review", "approve", one, "--by", WHO, "--reason", "to see what happens"])
    _type(["diff"])
    _type(["apply", "--all", "--by", WHO])
    patched = sorted(name for name, content in _contents(place / "agent").items() if content != before.get(name))
    _type(["status"])
    for one in ids:
        _type(["revert", one, "--by", WHO, "--reason", "the demo is over"])
    restored = _contents(place / "agent") == before
    click.echo(f"\n{', '.join(patched)}: {'as before, byte for byte' if restored else 'NOT as before'}")
    return {"proposals": ids, "patched": patched, "restored": restored}


def _type(words: Sequence[str]) -> None:
    """Do what the command does, below the command."""
    from dspy_reflex.cli.main import cli

    click.echo(f"\n$ dspy-reflex {shlex.join(words)}")
    sys.stdout.flush()
    cli.main(list(words), standalone_mode=False)


def _pending() -> list[str]:
    from dspy_reflex.api import Reflex

    with Reflex() as reflex:
        return [one.id for one in reflex.proposals("pending")]


def _contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@contextmanager
def _environment(place: Path) -> Generator[None]:
    before = {name: os.environ.pop(name, None) for name in (*HOLDS, *OTHERS)}
    os.environ.update({name: str(place / inside) for name, inside in HOLDS.items()})
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
