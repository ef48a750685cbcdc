"""Records in, records out, and an honest word on what the program is worth."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from dspy_reflex.errors import ModelNotConfiguredError, ModelUnavailableError, ProgramError, RefusalError
from dspy_reflex.mechanism.symptom import symptom_of
from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.records.failure import Failure
from dspy_reflex.records.proposal import MAX_RULE_CHARS
from dspy_reflex.runtime import library
from dspy_reflex.runtime.artifact import Artifact, dumps
from dspy_reflex.runtime.calibration import Calibration
from dspy_reflex.runtime.lm.offline import OfflineModel
from dspy_reflex.runtime.program import CauseProgram, RuleProgram, load_program
from tests.runtime.programs import (
    HOUSE,
    ScriptedModel,
    cause_answer,
    failure,
    published,
    raw_failures,
    rule_answer,
)

HALF = Calibration(slope=0.5, shift=-1.0, n=72)
SCORES = {"metric": "macro-F1", "value": 0.5, "interval": [0.4, 0.6], "n": 48, "on": "val"}
TEXT = "The tap drips.\nHTTP 503 Service\tUnavailable from the stock service"


def diagnosed(answer: str = "", by: ScriptedModel | None = None, **known: Any) -> Diagnosis:
    """What becomes of an answer, by a program compiled for the offline model unless `known` says otherwise."""
    defaults: dict[str, Any] = {"model": "offline/1", "threshold": 0.5, "scores": SCORES}
    artifact = published(**defaults | known)
    return CauseProgram(artifact, by or ScriptedModel(answer or cause_answer()))(failure(TEXT, expected_outcome=None))


def proposer(answer: str = "", model: ScriptedModel | None = None) -> RuleProgram:
    """A rule program whose model says this."""
    return RuleProgram(published("rule", model="offline/1"), model or ScriptedModel(answer or rule_answer()))


# Diagnoses


def test_an_answer_becomes_a_diagnosis() -> None:
    found = diagnosed(cause_answer(evidence="The tap drips.", second="blockage", confidence="0.75"))
    assert (found.failure_id, found.root_cause, found.second, found.confidence) == ("f1", "leak", "blockage", 0.75)
    assert (found.needs_review, found.review_reason) == (False, "")
    assert (found.reasoning, found.evidence) == ("It drips.", ("The tap drips.",))
    assert found.symptom == symptom_of(TEXT)
    assert found.signature == "the tap drips. http <num> service unavailable from the stock service"
    assert found.program.startswith("root_cause@")
    assert (found.model, found.score) == ("offline/1", "val macro-F1 0.50 [0.40, 0.60], n=48")
    assert found.mechanism.root_cause == "leak"


@pytest.mark.parametrize(
    ("quotes", "kept"),
    [
        ("The tap drips.", ("The tap drips.",)),
        ("the tap drips.", ()),
        ("The tap dripped.", ()),
        ("HTTP 503  Service Unavailable", ("HTTP 503  Service Unavailable",)),
        ("- The tap drips.\n* stock service", ("The tap drips.", "stock service")),
        ('"The tap drips."\n\u201cstock service\u201d', ("The tap drips.", "stock service")),
        ("The tap drips.\nThe tap drips.", ("The tap drips.",)),
        ("made up\nstock service", ("stock service",)),
        ("ta", ()),
        ("", ()),
        ("look after the house", ("look after the house",)),
    ],
)
def test_evidence_is_kept_only_when_it_stands_in_the_failure(quotes: str, kept: tuple[str, ...]) -> None:
    assert diagnosed(cause_answer(evidence=quotes)).evidence == kept


@pytest.mark.parametrize("quote", ["not stated", "characters left out"])
def test_our_own_words_are_no_evidence(quote: str) -> None:
    """`not stated` and the mark of a clipped text stand in the prompt, but nobody in the failure wrote them."""
    program = CauseProgram(published(), ScriptedModel(cause_answer(evidence=f"the house\n{quote}")))
    assert program(failure("x" * 9_000, expected_outcome=None)).evidence == ("the house",)


def test_what_was_clipped_away_is_no_evidence() -> None:
    """The model cannot have seen it."""
    program = CauseProgram(published(), ScriptedModel(cause_answer(evidence="in the middle\nat the end")))
    found = program(failure("x" * 9_000 + "in the middle" + "x" * 9_000 + "at the end"))
    assert found.evidence == ("at the end",)


@pytest.mark.parametrize(("second", "found"), [("none", None), ("leak", None), ("blockage", "blockage")])
def test_a_second_cause_is_another_cause_or_none(second: str, found: str | None) -> None:
    assert diagnosed(cause_answer(second=second)).second == found


@pytest.mark.parametrize(
    ("said", "confidence"), [("0.25", 0.25), ("1.5", 1.0), ("-3", 0.0), ("inf", 0.0), ("-inf", 0.0), ("nan", 0.0)]
)
def test_confidence_is_a_probability(said: str, confidence: float) -> None:
    assert diagnosed(cause_answer(confidence=said)).confidence == confidence


@pytest.mark.parametrize(
    ("answer", "known", "reason"),
    [
        (cause_answer(confidence="0.5"), {}, ""),
        (cause_answer(confidence="0.49"), {}, "confidence 0.49 is below the threshold 0.50"),
        (cause_answer(confidence="nan"), {}, "confidence 0.00 is below the threshold 0.50"),
        (cause_answer(), {"threshold": None}, "the program has no threshold"),
        (cause_answer(confidence="0"), {"threshold": 0.0}, ""),
        (cause_answer(), {"model": "any", "threshold": None}, "no threshold was measured for this program and model"),
        (cause_answer(), {"model": "openai/x"}, "was compiled for openai/x, not for offline/1"),
        ("leak", {}, "unparsable: the answer has no field 'reasoning'"),
        ("leak", {"model": "openai/x"}, "unparsable: the answer has no field 'reasoning'"),
    ],
)
def test_a_person_should_look(answer: str, known: dict[str, Any], reason: str) -> None:
    found = diagnosed(answer, **known)
    assert found.needs_review is bool(reason)
    assert found.review_reason.startswith(reason) or (reason and reason in found.review_reason)


def test_a_refusal_has_no_cause_and_is_marked() -> None:
    found = diagnosed(by=ScriptedModel("I cannot.", finish="refusal"))
    assert (found.root_cause, found.second, found.confidence, found.evidence) == (None, None, 0.0, ())
    assert found.needs_review
    assert found.review_reason.startswith("refusal: ")
    assert found.signature


@pytest.mark.parametrize(("stated", "review"), [("0.9", ""), ("0.85", "confidence 0.46 is below the threshold 0.50")])
def test_confidence_is_calibrated_and_the_threshold_is_on_what_comes_of_it(stated: str, review: str) -> None:
    """.85 is worth less than .5 here."""
    found = diagnosed(cause_answer(confidence=stated), calibration=HALF.to_json())
    assert found.confidence == HALF.of(float(stated))
    assert found.review_reason == review


@pytest.mark.parametrize("answer", ["leak", cause_answer(confidence="nan")])
def test_no_confidence_is_none_after_calibration(answer: str) -> None:
    """What was not stated cannot be worth anything."""
    assert diagnosed(answer, calibration=HALF.to_json()).confidence == 0


def test_calibration_holds_for_one_model_only() -> None:
    found = diagnosed(cause_answer(confidence="0.9"), calibration=HALF.to_json(), model="openai/x")
    assert found.confidence == 0.9
    assert "was compiled for openai/x, not for offline/1" in found.review_reason


def test_on_another_model_it_warns_and_quotes_no_score() -> None:
    artifact = published(model="openai/x", threshold=0.5, scores=SCORES)
    program = CauseProgram(artifact, ScriptedModel(cause_answer(confidence="0.99")))
    assert "its threshold is dropped and every answer is marked for review" in program.warning
    assert program(failure()).score == "unmeasured"
    assert program(failure()).review_reason == program.warning


@pytest.mark.parametrize("known", [{}, {"model": "offline/1"}])
def test_what_nobody_measured_says_so(known: dict[str, Any]) -> None:
    program = CauseProgram(published(**known), ScriptedModel(cause_answer()))
    assert program(failure()).score == "unmeasured"
    assert program.warning == ""


def test_an_outage_is_an_exception_not_a_diagnosis() -> None:
    with pytest.raises(ModelUnavailableError):
        diagnosed(by=ScriptedModel(lambda _: ModelUnavailableError("down")))


@settings(max_examples=100)
@given(raw_failures)
def test_any_mapping_can_be_diagnosed(raw: dict[str, Any]) -> None:
    """Nothing validated it: it comes straight from someone's logger."""
    found = CauseProgram(published(), OfflineModel())(raw)
    assert found.root_cause in HOUSE.labels
    assert Diagnosis.model_validate_json(found.model_dump_json()) == found


def test_a_record_and_its_mapping_get_the_same_diagnosis(cause: Artifact) -> None:
    program = CauseProgram(cause, OfflineModel())
    raw: dict[str, Any] = {"id": "f1", "task": "t", "actual_outcome": "HTTP 503", "context": {"log": ["a"]}}
    record = Failure.model_validate(raw | {"more": "x"})
    assert program(record) == program(record.model_dump()) == program(raw)


def test_an_id_of_any_kind_is_text() -> None:
    program = CauseProgram(published(), OfflineModel())
    assert [program({"id": id_, "actual_outcome": "a"}).failure_id for id_ in (7, None, "x")] == ["7", "", "x"]


def test_async_gives_what_sync_gives(compiled: Mapping[str, Artifact]) -> None:
    cause, rule = CauseProgram(compiled["cause"], OfflineModel()), RuleProgram(compiled["rule"], OfflineModel())
    assert asyncio.run(cause.acall(failure())) == cause(failure())
    arguments = ([failure(), failure("HTTP 429", id="f2")], "tool_failure", ["Be brief."])
    assert asyncio.run(rule.acall(*arguments)) == rule(*arguments)


def test_the_symptom_is_read_from_the_end_of_the_context() -> None:
    program = CauseProgram(published(), ScriptedModel(cause_answer()))
    far = program({"actual_outcome": "it is wrong", "context": "request timed out" + " x" * 5_000})
    near = program({"actual_outcome": "it is wrong", "context": "x " * 5_000 + "request timed out"})
    assert near.symptom == "timeout"
    assert far.symptom != "timeout"


# Proposals


def test_an_answer_becomes_a_proposal() -> None:
    found = proposer(rule_answer(rule="Close  the\nvalve."))([failure(), failure(id="f2")], "leak", ["Be brief."])
    assert (found.failure_ids, found.root_cause, found.component) == (("f1", "f2"), "leak", "TOOLS")
    assert (found.rule, found.rationale, found.score) == ("Close the valve.", "Dry feet.", "unmeasured")
    assert found.program.startswith("rule@")


def test_one_failure_may_come_alone_as_a_record_or_a_mapping() -> None:
    propose = proposer()
    assert propose(failure(), "leak") == propose([failure()], "leak") == propose(failure().model_dump(), "leak")
    assert propose(iter([failure()]), "leak") == propose([failure()], "leak")


def test_what_is_there_already_is_shown_to_the_model() -> None:
    model = ScriptedModel(rule_answer())
    proposer(model=model)(failure(), "leak", (rule for rule in ["Be brief."]))
    assert "[[ ## existing_rules ## ]]\n- Be brief." in model.asked[0][-1]["content"]


def test_the_same_proposal_has_the_same_id_and_another_has_another() -> None:
    first = proposer()(failure(), "leak")
    assert first.id == proposer(rule_answer(rationale="Other."))(failure(), "leak").id
    assert first.id.startswith("prop_")
    assert len(first.id) == len("prop_") + 16
    others = [
        proposer(rule_answer(rule="Other."))(failure(), "leak"),
        proposer(rule_answer(component="SOUL"))(failure(), "leak"),
        proposer()(failure(), "blockage"),
    ]
    assert len({first.id, *(other.id for other in others)}) == 4
    assert proposer()(failure(id="f2"), "leak").id == first.id


@pytest.mark.parametrize("cause", ["rust", "", "Leak", "none"])
def test_a_cause_that_the_program_does_not_know_is_refused_before_asking(cause: str) -> None:
    model = ScriptedModel(rule_answer())
    with pytest.raises(ProgramError, match="its causes are leak, blockage, short_circuit, cold_room"):
        proposer(model=model)(failure(), cause)
    assert model.asked == []


@pytest.mark.parametrize(
    "model",
    [
        ScriptedModel("I cannot.", finish="refusal"),
        ScriptedModel("Close the valve."),
        ScriptedModel(rule_answer(component="NOTES")),
        ScriptedModel(rule_answer(rule="")),
        ScriptedModel(rule_answer(rule=" \n ")),
        ScriptedModel(rule_answer(rule="x" * (MAX_RULE_CHARS + 1))),
    ],
)
def test_without_a_usable_rule_there_is_no_proposal(model: ScriptedModel) -> None:
    with pytest.raises(RefusalError, match="offline/1 proposed"):
        proposer(model=model)(failure(), "leak")
    with pytest.raises(RefusalError, match="offline/1 proposed"):
        asyncio.run(proposer(model=model).acall(failure(), "leak"))


def test_the_longest_rule_is_kept_whole() -> None:
    rule = "x" * MAX_RULE_CHARS
    assert proposer(rule_answer(rule=rule))(failure(), "leak").rule == rule


def test_every_cause_gets_a_rule_from_the_compiled_program(rule: Artifact) -> None:
    propose = RuleProgram(rule, OfflineModel())
    for label in rule.labels:
        found = propose(failure(), label)
        assert 0 < len(found.rule) <= MAX_RULE_CHARS
        assert "rule score 0." in found.score


# Loading


def test_a_program_is_loaded_from_its_file(compiled: Mapping[str, Artifact], tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(dumps(compiled["cause"]), encoding="utf-8")
    for given_path in (path, str(path)):
        program = load_program("root_cause", path=given_path)
        assert program.artifact == compiled["cause"]
        assert program(failure()).needs_review in (True, False)
    with pytest.raises(ProgramError, match="this is a root_cause program, not a rule program"):
        load_program("rule", path=path)


def test_the_current_program_of_the_model_is_loaded(compiled: Mapping[str, Artifact], in_empty_folder: Path) -> None:
    for name in ("cause by guide", "cause"):
        artifact = compiled[name]
        (in_empty_folder / "programs" / "root_cause").mkdir(parents=True, exist_ok=True)
        path = in_empty_folder / "programs" / "root_cause" / f"{artifact.version}.json"
        path.write_text(dumps(artifact), encoding="utf-8")
        library.set_current(Path("programs"), artifact)
    assert load_program("root_cause").artifact == compiled["cause"]


def test_a_model_without_a_program_of_its_own_gets_the_guide(
    compiled: Mapping[str, Artifact], in_empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guide = compiled["cause by guide"]
    folder = in_empty_folder / "programs" / "root_cause"
    folder.mkdir(parents=True)
    (folder / f"{guide.version}.json").write_text(dumps(guide), encoding="utf-8")
    library.set_current(Path("programs"), guide)
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", "http://127.0.0.1:9/v1")
    assert load_program("root_cause", lm="hosted_vllm/x").artifact == guide
    assert load_program("root_cause", lm="hosted_vllm/x").warning == ""


def test_a_misplaced_program_is_refused_with_its_file(compiled: Mapping[str, Artifact], in_empty_folder: Path) -> None:
    rule = compiled["rule"]
    folder = in_empty_folder / "programs" / "root_cause"
    folder.mkdir(parents=True)
    (folder / f"{rule.version}.json").write_text(dumps(rule), encoding="utf-8")
    (folder / "current.json").write_text(f'{{"offline/1": "{rule.version}"}}', encoding="utf-8")
    with pytest.raises(ProgramError, match=rf"{rule.version}.*this is a rule program, not a root_cause program"):
        load_program("root_cause")


def test_what_cannot_be_loaded_is_refused() -> None:
    with pytest.raises(ProgramError, match="there is no program 'cause'; choose one of root_cause, rule"):
        load_program("cause")
    with pytest.raises(ProgramError, match="no such program file"):
        load_program("rule", path="nowhere.json")
    with pytest.raises(ModelNotConfiguredError):
        load_program("rule", lm="nobody/x")


def test_a_users_own_symptoms_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a file that an environment variable names."""
    table = tmp_path / "symptoms.toml"
    table.write_text("[[symptom]]\nname = 'wet_floor'\nmeaning = 'Water.'\npatterns = ['puddle']\n", encoding="utf-8")
    raw = {"task": "t", "actual_outcome": "HTTP 429, and a puddle under the sink"}
    program = CauseProgram(published(), OfflineModel())
    assert program(raw).symptom == "rate_limit"
    monkeypatch.setenv("REFLEX_SYMPTOMS", str(table))
    assert program(raw).symptom == "wet_floor"
