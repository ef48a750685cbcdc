"""The command group. A command's module is imported when the command runs, so `--help` costs nothing."""

from __future__ import annotations

import logging
import sys
from importlib import import_module

import click

from dspy_reflex import __version__
from dspy_reflex.errors import EXIT_BAD_INPUT, ReflexError

EXIT_INTERRUPTED = 130

COMMANDS = {
    "compile": ("compiling", "Compile a program on labelled failures."),
    "benchmark": ("benchmarking", "Score programs and baselines on labelled failures."),
    "diagnose": ("diagnosing", "Name the root cause of failures."),
    "propose": ("proposing", "Propose rules for failures, as diffs of the agent's rule files."),
    "programs": ("libraries", "List, show, verify and export compiled programs."),
}
"""Command to its module in this folder and its line in `--help`; the module has a command `command`."""


class LazyGroup(click.Group):
    """A group that knows its commands' names and imports one only to run it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        if cmd_name not in COMMANDS:
            return None
        return import_module(f"dspy_reflex.cli.{COMMANDS[cmd_name][0]}").command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in `--help`, without an import."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dspy-reflex")
def cli() -> None:
    """Name the root causes of agent failures and propose rules as diffs, with compiled DSPy programs."""


def main() -> None:
    """Run a command; every error made on purpose is one sentence on stderr and exit code 2."""
    logging.getLogger("stamina").addHandler(logging.NullHandler())  # its retries are not for people
    try:
        code = cli.main(standalone_mode=False)
    except ReflexError as error:
        click.echo(f"error: {error}", err=True)
        code = EXIT_BAD_INPUT
    except click.ClickException as error:
        error.show()
        code = EXIT_BAD_INPUT
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        code = 1
    except OSError as error:
        click.echo(f"error: {error.filename or 'a file'}: {error.strerror or error}; check it and try again", err=True)
        code = EXIT_BAD_INPUT
    sys.exit(code if isinstance(code, int) else 0)
