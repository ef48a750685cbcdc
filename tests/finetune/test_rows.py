"""What the rows of a lesson are: for every kind and task, what is asked, what is answered, and what they rest on."""

from __future__ import annotations

from typing import Any

import pytest

from dspy_reflex.finetune.formats.base import Said, check
from dspy_reflex.finetune.plan import Plan
from dspy_reflex.finetune.row import Kind, Row, Task, Turn
from dspy_reflex.finetune.rows.behave import Shares
from dspy_reflex.store.store import Store
from tests.finetune.taught import OTHER, RULE, against, drawn, failed, known, ruled

TALK = [
    {"role": "assistant", "content": "I wait 30 s."},
    {"role": "user", "content": "Go on."},
    {"role": "assistant", "content": "Sent."},
]


def of(store: Store, task: Task, kind: Kind | None = None, **shares: float) -> list[Row]:
    """Rows of one task, and of one kind."""
    plan = Plan(tasks=(task,), shares=Shares(**{"without_rule": 0.0, "controls": 0.0, **shares}))
    return [row for row in drawn(store, plan) if kind in (None, row.kind)]


def texts(turns: tuple[Turn, ...]) -> list[str]:
    """What is said."""
    return [turn.content for turn in turns]


def test_a_correction_becomes_rows_of_every_kind(store: Store) -> None:
    ruled(store, RULE, "applied", *failed(store, "It broke"), correction="It works.")
    sft, pair, liked, disliked, rewarded = of(store, "behave")
    asked = [f"Learned rules:\n- {RULE}", "Task of It broke\n\ntool: telegram"]
    assert (texts(sft.prompt), texts(sft.answer)) == (asked, ["It works."])
    assert (texts(pair.answer), texts(pair.rejected)) == (["It works."], ["It broke"])
    assert [(one.label, texts(one.answer)) for one in (liked, disliked)] == [
        (True, ["It works."]),
        (False, ["It broke"]),
    ]
    assert [(turn.role, turn.reward) for turn in rewarded.answer] == [
        ("assistant", 0.0),
        ("user", None),
        ("assistant", 1.0),
    ]


def test_a_row_says_what_it_rests_on(store: Store) -> None:
    (failure,) = failed(store, "It broke")
    rule = ruled(store, RULE, "applied", failure, correction="It works.")
    told = of(store, "behave", "sft")[0].lineage
    assert (told.failures, told.proposals) == ((failure.id,), (rule.id,))
    assert told.programs == ("root_cause@0123456789ab", rule.proposal.program)
    assert told.diagnoses[0].startswith("diag_")
    assert told.review.startswith("rev_")
    assert len(told.rule_sha256) == 64


@pytest.mark.parametrize(("share", "ruled_rows"), [(0.0, 2), (1.0, 0)])
def test_the_rule_is_left_out_of_the_stated_share(store: Store, share: float, ruled_rows: int) -> None:
    ruled(store, RULE, "kept", *failed(store, "a", "b"), correction="Waited.")
    rows = of(store, "behave", "sft", without_rule=share)
    assert sum(row.prompt[0].role == "system" for row in rows) == ruled_rows


def test_the_rule_is_never_what_is_imitated_as_behaviour(store: Store) -> None:
    ruled(store, RULE, "kept", *failed(store, "a", "b"), correction="Waited, then sent.")
    for row in of(store, "behave"):
        if row.kind != "rewarded":
            assert all(RULE not in turn.content for turn in row.answer)


def test_of_a_corrected_conversation_the_last_answer_is_preferred(store: Store) -> None:
    ruled(store, RULE, "kept", *failed(store, "It broke"), correction=TALK)
    sft, pair, liked, disliked, rewarded = of(store, "behave", without_rule=1.0)
    assert texts(sft.answer) == ["I wait 30 s.", "Go on.", "Sent."]
    assert texts(pair.prompt)[1:] == texts(liked.prompt)[1:] == ["I wait 30 s.", "Go on."]
    assert (texts(pair.answer), texts(pair.rejected)) == (["Sent."], ["It broke"])
    assert len(disliked.prompt) == 1
    assert [turn.reward for turn in rewarded.answer] == [0.0, None, 1.0, None, 1.0]


def test_a_conversation_may_tell_the_question_anew(store: Store) -> None:
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Send it, please."}]
    ruled(store, RULE, "kept", *failed(store, "It broke"), correction=asked + TALK)
    (row,) = of(store, "behave", "sft")
    assert texts(row.prompt) == [f"Be brief.\n\nLearned rules:\n- {RULE}", "Send it, please."]


@pytest.mark.parametrize(
    "odd",
    [
        "", " ", 7, [], {}, {"evt_other": "x"}, [{"role": "assistant"}], [{"role": "robot", "content": "x"}], TALK[:2],
        [TALK[0], TALK[2]], [*TALK[1:2], *TALK[1:2], TALK[2]], [{"role": "system", "content": "x"}, TALK[2]], ["x"],
        [*TALK, {"role": "assistant", "content": " "}],
    ],
)  # fmt: skip
def test_what_is_no_correction_teaches_no_behaviour(store: Store, odd: Any) -> None:
    ruled(store, RULE, "kept", *failed(store, "It broke"), correction=odd)
    assert of(store, "behave") == []


def test_every_row_is_one_that_formats_take(store: Store) -> None:
    for correction in ("Waited.", TALK, [TALK[1], *TALK]):
        ruled(store, RULE, "kept", *failed(store, f"a{correction}"), correction=correction)
        (other,) = failed(store, f"b{correction}", said={"symptom": "timeout"})
        one = ruled(store, OTHER, "kept", other, correction=correction, symptom="timeout")
        ruled(store, "Never.", "rejected", other, symptom="timeout", proposal=one.proposal)
    for row in drawn(store, Plan(shares=Shares(0.5, 1.0))):
        check(Said(row.prompt, row.answer, row.rejected, row.label))
        assert len(row.answer) == 1 or row.kind in ("sft", "rewarded")


def test_a_control_shows_a_rule_that_is_not_about_the_situation(store: Store) -> None:
    (throttled,) = failed(store, "Dropped")
    (forgotten,) = failed(store, "Wrong name", said={"symptom": "wrong_result", "signature": "wrong name"})
    one = ruled(store, RULE, "kept", throttled, correction="Waited.")
    two = ruled(store, OTHER, "kept", forgotten, correction="Right name.", symptom="wrong_result")
    rows = [row for row in of(store, "behave", controls=1.0) if len(row.lineage.proposals) == 2]
    shown = {(row.kind, row.lineage.proposals, texts(row.answer)[0], *texts(row.rejected)) for row in rows}
    assert shown == {
        ("sft", (one.id, two.id), "Waited."),
        ("preference", (one.id, two.id), "Waited.", "Right name."),
        ("sft", (two.id, one.id), "Right name."),
        ("preference", (two.id, one.id), "Right name.", "Waited."),
    }
    assert all(RULE in row.prompt[0].content for row in rows if row.lineage.proposals[1] == one.id)
    assert all(set(row.lineage.failures) == {throttled.id, forgotten.id} for row in rows if row.kind == "preference")


def test_a_rule_without_a_corrected_failure_is_passed_over_for_a_control(store: Store) -> None:
    one, _, three = (
        ruled(
            store, f"{RULE} {place}", "kept", *failed(store, f"outcome {place}"), correction=said, symptom=f"s{place}"
        )
        for place, said in enumerate(("Right 0.", None, "Right 2."))
    )
    rows = of(store, "behave", controls=1.0)
    shown = {row.lineage.proposals for row in rows if len(row.lineage.proposals) == 2}
    assert shown == {(one.id, three.id), (three.id, one.id)}


def test_a_rule_against_the_same_is_no_control(store: Store) -> None:
    for text, rule in (("a", RULE), ("b", OTHER)):
        ruled(store, rule, "kept", *failed(store, text), correction=f"Right {text}.")
    assert all(len(row.lineage.proposals) == 1 for row in of(store, "behave", controls=1.0))


def test_an_approved_rule_is_proposed_and_preferred_to_its_words_before_an_edit_and_to_rejected_ones(
    store: Store,
) -> None:
    failures = failed(store, "a", "b")
    ruled(store, RULE, "kept", *failures, original="Wait.")
    ruled(store, "Give up.", "rejected", *failures)
    rows = of(store, "propose")
    assert [row.kind for row in rows] == ["sft", "unpaired", "preference", "preference", "unpaired"]
    assert all(RULE in row.answer[0].content for row in rows[:4])
    assert ["Wait." in rows[2].rejected[0].content, "Give up." in rows[3].rejected[0].content] == [True, True]
    assert (rows[4].label, "Give up." in rows[4].answer[0].content) == (False, True)
    assert "429, no retry" not in rows[0].prompt[-1].content
    assert all("actual_outcome: a\n" in row.prompt[-1].content for row in rows)


def test_a_rejected_rule_against_something_else_is_not_compared(store: Store) -> None:
    failures = failed(store, "a")
    one = ruled(store, RULE, "kept", *failures)
    ruled(store, "Give up.", "rejected", *failures, **against(one, "context_loss"))
    assert [row.kind for row in of(store, "propose")] == ["sft", "unpaired", "unpaired"]


def test_a_self_edit_states_the_preference_and_answers_by_it(store: Store) -> None:
    ruled(store, RULE, "kept", *failed(store, "a"), correction="Waited.")
    stated, derived = of(store, "self_edit")
    preference = f"For tool failure seen as rate limit, prefer this: {RULE}"
    assert texts(stated.answer) == [preference]
    assert (texts(derived.prompt)[0], texts(derived.answer)) == (preference, ["Waited."])


def test_no_more_failures_are_shown_than_the_program_sees(store: Store) -> None:
    ruled(store, RULE, "kept", *failed(store, *(f"outcome {place}" for place in range(9))))
    stated, *_ = of(store, "self_edit")
    assert len(stated.lineage.failures) == stated.prompt[0].content.count("\n- ") == 5


def test_causes_that_people_named_or_stood_by_are_taught(store: Store) -> None:
    stood_by, named, other, unknown = failed(store, "a", "b", "c", "d")
    ruled(store, RULE, "kept", stood_by, other)
    known(store, named, "context_loss")
    known(store, other, "reasoning_error")
    known(store, unknown, "a cause of another label set")
    rows = of(store, "classify")
    answers = {row.lineage.failures[0]: row.answer[0].content for row in rows}
    assert set(answers) == {stood_by.id, named.id, other.id}
    assert "[[ ## root_cause ## ]]\ntool_failure\n" in answers[stood_by.id]
    assert "[[ ## root_cause ## ]]\nreasoning_error\n" in answers[other.id]
    programs = {row.lineage.failures[0]: row.lineage.programs for row in rows}
    assert programs[named.id] == ("person",)


def test_a_situation_is_neutralised_and_clipped(store: Store) -> None:
    long = "x" * 9_000
    ruled(store, RULE, "kept", *failed(store, "[[ ## completed ## ]]" + long, context=None), correction="Right.")
    sft, pair, *_ = of(store, "behave", without_rule=1.0)
    assert len(sft.prompt[0].content) == len(pair.rejected[0].content) == 8_000
    assert pair.rejected[0].content.startswith("[# completed #]")
