"""What may not leave does not: secrets and personal data, and rules and failures that nobody stands by any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from dspy_reflex.api import Reflex
from dspy_reflex.finetune.formats.registry import NAMES
from dspy_reflex.finetune.plan import Plan
from dspy_reflex.finetune.row import Turn
from dspy_reflex.finetune.rows.behave import Shares
from dspy_reflex.records.review import State
from dspy_reflex.store import forget, proposals
from dspy_reflex.store.store import Store
from tests.corpora.secrets import LOOK_ALIKES, SECRETS
from tests.finetune.taught import RULE, drawn, exported, failed, known, ruled, text_in
from tests.store.events import filed

STATES: tuple[State, ...] = get_args(State)
EVERYTHING = Plan(split=0.3, shares=Shares(0.5, 1.0))


@pytest.fixture(scope="module")
def reflex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reflex]:
    """A workspace in which every secret was logged, and written once more by a reviewer."""
    home = tmp_path_factory.mktemp("home")
    with Reflex(home) as opened:
        ids = [_logged(opened, one.text) for one in SECRETS]
        opened.recorder.flush()
        for one in ids:
            opened.label(one, "tool_failure", by="ada")
        written = {
            one: _written(planted.text, n % 2 == 0) for n, (one, planted) in enumerate(zip(ids, SECRETS, strict=True))
        }
        rule = filed(*ids, rule=RULE).model_copy(update={"file": str(home / "TOOLS.md")})
        with opened.store.write() as connection:
            proposals.file(connection, rule, actor="test")
        opened.approve(rule.id, by="ada", correction=written)
        yield opened


@pytest.mark.parametrize("form", NAMES)
def test_no_secret_is_in_any_file_of_any_format(reflex: Reflex, tmp_path: Path, form: str) -> None:
    """Through `log`, a reviewer's correction, and the export."""
    found = exported(reflex.store, tmp_path / "out", form, EVERYTHING).contents
    said = text_in(tmp_path / "out")
    assert [one.text for one in SECRETS if one.secret in said] == []
    assert sum(found.rows.values()) > len(SECRETS)


@pytest.mark.parametrize("form", ["trl", "parquet"])
def test_what_was_stored_with_a_secret_is_taken_out_and_counted(store: Store, tmp_path: Path, form: str) -> None:
    """By an older version, whose table knew less."""
    cases = failed(store, *(f"outcome {place}" for place in range(len(SECRETS))))
    written = {case.id: planted.text for case, planted in zip(cases, SECRETS, strict=True)}
    ruled(store, RULE, "kept", *cases, correction=written)
    found = exported(store, tmp_path / "out", form, EVERYTHING).contents
    said = text_in(tmp_path / "out")
    assert [one.text for one in SECRETS if one.secret in said] == []
    assert {"github_token", "email", "password"} <= set(found.redacted)


def test_what_only_looks_like_a_secret_stays(store: Store, tmp_path: Path) -> None:
    cases = failed(store, *LOOK_ALIKES, context=None)
    ruled(store, RULE, "kept", *cases, correction=dict(zip((one.id for one in cases), LOOK_ALIKES, strict=True)))
    found = exported(store, tmp_path / "out", "parquet", EVERYTHING)
    said = text_in(tmp_path / "out")
    assert found.contents.redacted == {}
    assert [one for one in LOOK_ALIKES if one not in said] == []


@dataclass(frozen=True)
class Told:
    """A rule and what became of it; each has words of its own."""

    place: int
    state: State
    edited: bool
    forgotten: bool
    by_policy: bool
    labelled: bool

    def word(self, what: str) -> str:
        """A word that only this rule, failure or correction has."""
        return f"{what}{self.place}x"

    @property
    def is_silent(self) -> bool:
        """Whether nothing of it may be in any row."""
        return self.forgotten or self.state in ("pending", "deferred", "reverted") or self.by_policy


told = st.builds(Told, st.just(0), st.sampled_from(STATES), *[st.booleans()] * 4)
Words = tuple[Turn, ...]


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(rules=[Told(0, state, True, False, False, False) for state in STATES])
@example(rules=[Told(0, state, True, True, False, True) for state in STATES])
@given(rules=st.lists(told, min_size=1, max_size=6))
def test_only_what_people_stand_by_is_ever_something_to_imitate(store: Store, rules: list[Told]) -> None:
    _empty(store)
    rules = [replace(one, place=place) for place, one in enumerate(rules)]
    for one in rules:
        _happened(store, one)
    rows = drawn(store, EVERYTHING)
    wanted = [turn for row in rows if row.label is not False for turn in row.answer]
    asked = [turn for row in rows for turn in row.prompt]
    unwanted = [turn for row in rows for turn in (*row.rejected, *(row.answer if row.label is False else ()))]
    for one in rules:
        rule, original, correction = (one.word(what) for what in ("rule", "original", "correction"))
        everywhere = [*wanted, *asked, *unwanted]
        if one.is_silent:
            assert not any(_in(everywhere, one.word(what)) for what in ("rule", "original", "correction"))
        if one.forgotten:
            assert not _in(everywhere, one.word("outcome"))
        if one.state == "rejected":
            assert not _in([*wanted, *asked], rule)
        if not one.is_silent and one.state != "rejected":
            assert _in(wanted, rule)
            assert _in(wanted, correction)
        assert not _in([*wanted, *asked], original)


def _happened(store: Store, one: Told) -> None:
    """A failure, a rule against it, and what people did."""
    (failure,) = failed(store, one.word("outcome"), context=one.word("had"), said={"signature": one.word("signature")})
    ruled(
        store, f"{one.word('rule')} wait and try again.", one.state, failure, correction=f"{one.word('correction')} done.",
        original=f"{one.word('original')} give up." if one.edited else None,
        policy="sure" if one.by_policy else None, symptom=f"s{one.place % 2}",
    )  # fmt: skip
    if one.labelled:
        known(store, failure, "tool_failure")
    if one.forgotten:
        with store.write() as connection:
            forget.forget(connection, failure.id, actor="ada", reason="asked to")


def _in(turns: list[Turn], word: str) -> bool:
    return any(word in turn.content for turn in turns)


def _empty(store: Store) -> None:
    with store.write() as connection:
        for table in ("reviews", "proposal_failures", "proposals", "diagnoses", "outcomes"):
            connection.exec_driver_sql(f"DELETE FROM {table}")


def _written(text: str, at_once: bool) -> JsonValue:
    """What a reviewer writes: the answer alone, or a conversation."""
    talk: list[JsonValue] = [{"role": "user", "content": text}, {"role": "assistant", "content": f"I used {text}"}]
    return text if at_once else talk


def _logged(reflex: Reflex, text: str) -> str:
    context = {"log": text, "steps": [{"said": text}]}
    return reflex.log("agent", task=f"Do {text}", expected_outcome=text, actual_outcome=text, context=context)
