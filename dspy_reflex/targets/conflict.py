"""A change that somebody made by hand to our block, beside what was written there and what would be.

What stands outside of the block is the user's to change and is no conflict, nor are line ends, which editors and git
rewrite.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dspy_reflex.targets.block import block_of, with_rules
from dspy_reflex.targets.diff import three_way
from dspy_reflex.targets.edit import Edit, apply_edits
from dspy_reflex.targets.rule import RuleLine


def conflict(content: bytes | None, base: Iterable[RuleLine], edits: Sequence[Edit], name: str) -> str:
    """The block as last written, as it stands, and as edits would make it, as two unified diffs.

    Args:
        content: The file as it is now; None if there is none.
        base: The rules as they were last written.
        edits: What is to be done to them.
        name: What to call the file.

    Returns:
        Nothing where the block is as it was written and the edits change nothing.

    Raises:
        TargetError: The markers are no pair, or the edits do not fit the base.
    """
    written = with_rules(content, base, name)
    wanted = apply_edits(written, edits, name)
    return three_way(name, *(block_of(version, name) for version in (written, content, wanted)))
