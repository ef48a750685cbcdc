"""What rows may say, for tests of formats."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from dspy_reflex.finetune.formats.base import Said
from dspy_reflex.finetune.formats.registry import NAMES, format_of
from dspy_reflex.finetune.row import Kind, Turn

CASES = [pytest.param(name, kind, id=f"{name}-{kind}") for name in NAMES for kind in format_of(name).shapes]

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip) | st.sampled_from(
    ["### User", " ### Assistant\n### System", "a\r\nb", "[[ ## x ## ]]", "a\u2028b", "{}"]
)
users = texts.map(lambda text: Turn("user", text))
answers = texts.map(lambda text: Turn("assistant", text))


@st.composite
def said(draw: st.DrawFn, kind: Kind) -> Said:
    """What a row of a kind may say."""
    system = draw(st.lists(texts.map(lambda text: Turn("system", text)), max_size=1))
    more = [turn for pair in draw(st.lists(st.tuples(users, answers), max_size=2)) for turn in pair]
    if kind == "rewarded":
        first, last = draw(texts), draw(texts)
        turns = (Turn("assistant", first, 0.0), draw(users), Turn("assistant", last, 1.0))
        return Said((*system, draw(users)), turns)
    if kind == "preference":
        return Said((*system, *more, draw(users)), (draw(answers),), (draw(answers),))
    if kind == "unpaired":
        return Said((*system, *more, draw(users)), (draw(answers),), label=draw(st.booleans()))
    return Said((*system, draw(users)), (draw(answers), *more))


def plain(kind: Kind) -> Said:
    """The least that a row of a kind says."""
    label = True if kind == "unpaired" else None
    rejected = (Turn("assistant", "no"),) if kind == "preference" else ()
    reward = 1.0 if kind == "rewarded" else None
    return Said((Turn("user", "q"),), (Turn("assistant", "a", reward),), rejected, label)
