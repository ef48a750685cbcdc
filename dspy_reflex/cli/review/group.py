"""`dspy-reflex review`; without a verb it lists what waits."""

from __future__ import annotations

import click

from dspy_reflex.cli.lazy import lazy_group

COMMANDS = {
    "list": ("reading:listed", "List proposals; the pending ones by default."),
    "show": ("reading:shown", "Show one with its failures, its diff and what was said of it."),
    "approve": ("acting:approve", "Approve a rule, or many by a filter."),
    "edit": ("acting:edit", "Approve other words for a rule."),
    "reject": ("acting:reject", "Reject a rule; the like of it is not proposed again."),
    "defer": ("acting:defer", "Leave a rule for later."),
    "walk": ("walking", "Go through all pending ones, one key each."),
    "auto": ("deciding", "Let the policies of the settings decide."),
    "label": ("learning:label", "Say why a failure happened."),
    "export": ("learning:export", "Write what was reviewed as labelled failures, for the next compile."),
}


class _Group(lazy_group("dspy_reflex.cli.review", COMMANDS)):
    """A group whose first verb may be left out."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; where they do not begin with a verb, `list` is meant."""
        is_listing = not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        return super().parse_args(ctx, ["list", *args] if is_listing else args)


@click.group(cls=_Group)
def command() -> None:
    """Say what becomes of proposed rules. Nothing is written to a rule file before somebody approved it."""
