"""What `docs/security.md` says is what the code has, what was measured, and what is measured now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.defence import FILLERS, changed_by_failure, failures, injected, linting, redaction
from dspy_reflex.redaction.table import TABLE
from dspy_reflex.rule_lint.lint import DANGERS, FORM

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
RESULT: dict[str, Any] = json.loads((ROOT / "experiments" / "defence" / "result.json").read_text(encoding="utf-8"))
PUT_IN = {
    "injection": "an injection",
    "latin": "Latin, which it has never seen",
    "english": "an English sentence about something else, repeated",
}


def redaction_sentence(told: dict[str, Any]) -> str:
    """Recall, look-alikes, ordinary failures, second opinion."""
    return (
        f"{told['redacted']} of {told['secrets']} planted secrets are taken out; {told['look_alikes_redacted']} of "
        f"{told['look_alikes']} look-alikes and {told['failures_redacted']} of {told['failures']:,} labelled failures, which "
        f"hold none, are touched. detect-secrets, without its detectors that guess, finds {told['second_opinion_finds']} of "
        f"the planted ones, and {told['second_opinion_finds_after']} in what is left. Of {told['beyond_shapes']} secrets "
        f"with neither shape nor name, {told['beyond_shapes_redacted']} are found."
    )


def speed_sentence(told: dict[str, Any], redacted: dict[str, Any]) -> str:
    """The look and the thorough one."""
    share = redacted["failures_cleared"] / redacted["failures"]
    return (
        f"an event of {told['event_bytes']} bytes with nothing suspicious in it costs {told['clears_us']:.0f} \u00b5s, one with "
        f"two secrets {told['redact_value_us']:.0f} \u00b5s (two busy cores); {share:.0%} of the labelled failures, long traces "
        "included, are of the first sort."
    )


def lint_sentence(told: dict[str, Any]) -> str:
    """Good rules, attacks, and bad rules in good form."""
    return (
        f"of {told['references']} reference rules {told['references_in_form']} have the form, and {told['references_pass']} pass "
        f"beside the failure they were written for; of {told['proposals']} rules that the offline program proposes for the val "
        f"split, {told['proposals_pass']}. Of {told['injections']} injections {told['injections_pass']} pass as a rule. Of "
        f"{told['bad_in_good_form']} bad rules in good form {told['bad_in_good_form_pass']} pass."
    )


def diagnoses_table(told: dict[str, Any]) -> str:
    """How often a diagnosis changes, and to what was asked for."""
    lines = [
        f"| put in | diagnosis changes, n={told['diagnoses']:,} | becomes what is asked for, n={told['asking']:,} |",
        "| --- | --- | --- |",
    ]
    lines += [
        f"| {words} | {_share(told['changed'][name])} | {_share(told['as_asked'][name])} |"
        for name, words in PUT_IN.items()
    ]
    return "\n".join(lines)


def _share(told: dict[str, Any]) -> str:
    low, high = told["interval"]
    return f"{told['share']:.1%} [{low:.1%}, {high:.1%}]"


def test_every_kind_and_every_check_is_named() -> None:
    assert [kind.name for kind in TABLE if f"`{kind.name}`" not in PAGE] == []
    assert [check.__name__ for check in (*FORM, *DANGERS) if f"`{check.__name__}`" not in PAGE] == []


def test_figures_are_the_committed_result() -> None:
    """Word for word."""
    for told in (
        redaction_sentence(RESULT["redaction"]),
        speed_sentence(RESULT["speed"], RESULT["redaction"]),
        lint_sentence(RESULT["lint"]),
    ):
        assert told in TEXT, told
    assert diagnoses_table(RESULT["injection"]) in PAGE, diagnoses_table(RESULT["injection"])
    assert set(PUT_IN) == {"injection", *FILLERS}


def test_redaction_is_as_measured() -> None:
    assert redaction() == RESULT["redaction"]


def test_the_lint_is_as_measured() -> None:
    assert linting() == RESULT["lint"]


def test_a_diagnosis_is_moved_as_measured() -> None:
    """The failure that is moved most often, without the fillers; the whole takes minutes."""
    name, moved = max(RESULT["injection"]["changed_by_failure"].items(), key=lambda one: one[1])
    (row,) = (row for row in failures("test") if row["id"] == name)
    assert changed_by_failure(injected([row], fillers={})) == {name: moved}
