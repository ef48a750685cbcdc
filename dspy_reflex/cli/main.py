"""The command `dspy-reflex`."""

from __future__ import annotations

import logging
import sys

import click

from dspy_reflex import __version__
from dspy_reflex.cli.lazy import lazy_group
from dspy_reflex.errors import EXIT_BAD_INPUT, ReflexError

EXIT_INTERRUPTED = 130

COMMANDS = {
    "compile": ("compiling", "Compile a program on labelled failures."),
    "tune": ("tuning", "Search over settings, on any number of machines."),
    "benchmark": ("benchmarking", "Score programs and baselines on labelled failures."),
    "promote": ("promoting", "Make a program current if it beats the current one on unseen failures."),
    "log": ("loop.log", "Record a failure."),
    "status": ("loop.status", "Show counts, and what models cost today."),
    "failures": ("loop.failures", "List, show, search, import and export recorded failures."),
    "diagnose": ("diagnosing", "Name the root cause of failures."),
    "analyze": ("diagnosing", "The same as diagnose."),
    "propose": ("proposing", "Propose rules for failures, as diffs of the agent's rule files."),
    "export": ("exporting", "Write approved rules as training rows for fine-tuning."),
    "review": ("review.group", "Approve, edit, reject or defer proposed rules."),
    "apply": ("rules.applying:apply", "Write approved rules into the agent's rule files."),
    "diff": ("rules.applying:diff", "Show what applying everything approved would change."),
    "revert": ("rules.reverting", "Undo a patch, or all since a day, to the byte."),
    "rules": ("rules.group", "List, retire and merge the rules that are in files."),
    "verify": ("rules.verifying", "See whether rules helped, and keep those that did."),
    "history": ("loop.keeping:history", "Who did what to a proposal or failure."),
    "forget": ("loop.keeping:forget", "Take a failure out of the store for good."),
    "prune": ("loop.keeping:prune", "Remove old outcomes; counts stay."),
    "doctor": ("loop.doctor", "Check the store, the spool, rule files and patches."),
    "demo": ("demo.group", "Try the loop out on ten failures that come with the package."),
    "programs": ("libraries", "List, show, verify and export compiled programs."),
    "experiments": ("experimenting", "List, show, compare and log what was compiled."),
    "data": ("data.group", "Import, label, check, split and publish labelled failures."),
}
"""Command to its module in this folder and its line in `--help`; the module has a command `command`."""


@click.group(cls=lazy_group("dspy_reflex.cli", COMMANDS), context_settings={"help_option_names": ["-h", "--help"]})
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
