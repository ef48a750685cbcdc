"""Command groups that import a command's module only when it runs, so that `--help` costs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click

Commands = Mapping[str, tuple[str, str]]
"""Command to its module, below the group's package, and its line in `--help`.

The module has a command `command`; where it has several, their name follows behind a colon.
"""


def lazy_group(package: str, commands: Commands) -> type[click.Group]:
    """A group class for `click.group(cls=...)` whose commands live in modules of `package`."""

    class LazyGroup(click.Group):
        """A group that knows its commands' names and imports one only to run it."""

        def list_commands(self, ctx: click.Context) -> list[str]:
            """All names, in the order of the work."""
            return list(commands)

        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            """Import and return one command."""
            if cmd_name not in commands:
                return None
            module, _, name = commands[cmd_name][0].partition(":")
            return getattr(import_module(f"{package}.{module}"), name or "command")

        def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            """The list in `--help`, without an import."""
            with formatter.section("Commands"):
                formatter.write_dl([(name, text) for name, (_, text) in commands.items()])

    return LazyGroup
