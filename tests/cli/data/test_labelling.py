"""Labelling and adjudicating in a real terminal, key by key."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest

from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.cli.runner import Reflex
from tests.evalset.rows import raw, write

CAUSES = load_taxonomy().labels
KEY = dict(zip(CAUSES, "123456", strict=True))
NONE, END = "\r", "\r"
SECONDS = 30


class Terminal:
    """A person at a keyboard: waits for a question, then presses a key."""

    def __init__(self, *arguments: object) -> None:
        command = ["-m", "dspy_reflex", "data", *map(str, arguments)]
        self.child: Any = pexpect.spawn(
            sys.executable, command, encoding="utf-8", timeout=SECONDS, dimensions=(50, 200)
        )

    def answer(self, question: str, *keys: str) -> None:
        """Wait for a question, then send keys."""
        self.child.expect(question)
        for key in keys:
            self.child.send(key)

    def label(self, cause: str, second: str = NONE, component: str = NONE, evidence: str = "") -> None:
        """Answer the four questions about one failure."""
        self.answer(r"root cause: .*quit", KEY.get(cause, cause))
        self.answer(r"second choice: .*back", second)
        self.answer(r"a rule would belong in: .*back", component)
        self.answer("\n> ", *([evidence, END] if evidence else []))
        if evidence:
            self.answer("> ")
        self.child.send(END)

    def rest(self) -> str:
        """What is shown until the command ends."""
        self.child.expect(pexpect.EOF)
        self.child.close()
        return str(self.child.before)


@pytest.fixture
def failures(tmp_path: Path) -> Path:
    """Three failures, one of them with a label that nobody must see."""
    return write(
        tmp_path / "failures.jsonl", *[raw(n, root_cause="overconfidence", family=f"fam{n}") for n in (1, 2, 3)]
    )


@pytest.fixture
def labelled(failures: Path) -> Path:
    """Where the labels go."""
    return failures.parent / "labelled.jsonl"


def read(path: Path) -> dict[str, dict[str, Any]]:
    """The rows of a labelled file by id."""
    return {row["id"]: row for row in map(json.loads, path.read_text().splitlines())}


def test_a_person_labels_goes_back_skips_quits_and_goes_on(failures: Path, labelled: Path) -> None:
    """Each answer is in the file before the next question is asked."""
    first = Terminal("label", failures, "--by", "ann", "--out", labelled)
    first.answer(r"1/3  f(\d)")
    number = first.child.match.group(1)
    first.label("tool_failure", KEY["context_loss"], "t", f"task {number}")
    first.answer("2/3")
    (row,) = read(labelled).values()
    assert row["votes"] == [{"annotator": "ann", "root_cause": "tool_failure", "second": "context_loss"}]
    assert (row["id"], row["evidence"]) == (f"f{number}", [f"task {number}"])
    first.answer(r"root cause: .*quit", "b")
    first.answer("1/3")
    first.label("knowledge_gap", component="g")
    first.answer(r"2/3[\s\S]*root cause: .*quit", "s")
    first.answer(r"3/3[\s\S]*root cause: .*quit", "q")
    assert "1 labelled by ann, 2 left" in first.rest()
    (row,) = read(labelled).values()
    assert (row["root_cause"], row["component"], row["family"]) == ("knowledge_gap", "AGENTS", f"fam{number}")

    second = Terminal("label", failures, "--by", "ann", "--out", labelled)
    second.answer("1/2")
    second.label("0")
    second.label("reasoning_error")
    assert "3 labelled by ann, 0 left" in second.rest()
    assert sorted(str(row["root_cause"]) for row in read(labelled).values()) == [
        "None",
        "knowledge_gap",
        "reasoning_error",
    ]


def test_the_suggestion_and_the_old_label_are_hidden_until_asked_for(failures: Path, labelled: Path) -> None:
    """Or the annotator agrees with the machine."""
    person = Terminal("label", failures, "--by", "ann", "--out", labelled)
    person.answer(r"root cause: .*quit")
    assert "%" not in person.child.before
    assert "overconfidence" not in person.child.before
    person.child.send("?")
    person.answer(r"root_cause@\w+: \w+ \(\d+%\)")
    person.answer(r"root cause: .*quit", "q")
    person.rest()


def test_a_step_can_be_taken_back_and_evidence_must_be_in_the_text(failures: Path, labelled: Path) -> None:
    """A wrong key costs one key."""
    person = Terminal("label", failures, "--by", "ann", "--out", labelled)
    person.answer(r"root cause: .*quit", KEY["tool_failure"])
    person.answer(r"second choice: .*back", "b")
    person.answer(r"root cause: .*quit", KEY["context_loss"])
    person.answer(r"second choice: .*back", NONE)
    person.answer(r"belong in: .*back", "s")
    person.answer("\n> ", "never said", END)
    person.answer("not in the text")
    person.answer("> ", END)
    person.answer(r"2/3[\s\S]*root cause: .*quit", "q")
    person.rest()
    (row,) = read(labelled).values()
    assert (row["root_cause"], row["component"], row["evidence"]) == ("context_loss", "SOUL", [])


def test_two_annotators_differ_and_a_third_person_decides_in_writing(
    failures: Path, labelled: Path, reflex: Reflex
) -> None:
    """The votes stay, so agreement is that before adjudication."""
    for name, causes in (("ann", CAUSES[:3]), ("ben", (CAUSES[0], CAUSES[1], CAUSES[5]))):
        person = Terminal("label", failures, "--by", name, "--out", labelled)
        for cause in causes:
            person.label(cause)
        person.rest()
    assert reflex("data", "agreement", labelled, "--json").json["raw"] == pytest.approx(2 / 3)
    assert "[undecided]" in reflex("data", "validate", labelled).out
    judge = Terminal("adjudicate", labelled, "--by", "cy")
    judge.answer(r"vote  ann: (\w+)[\s\S]*root cause: .*quit", KEY[CAUSES[5]])
    judge.answer("why: ", "the sum is wrong", END)
    assert "1 decided, 0 left" in judge.rest()
    (row,) = [row for row in read(labelled).values() if row["adjudication"]]
    assert (row["root_cause"], row["also_acceptable"]) == (CAUSES[5], [CAUSES[2]])
    assert row["adjudication"] == "cy: the sum is wrong"
    assert reflex("data", "agreement", labelled, "--json").json["raw"] == pytest.approx(2 / 3)


def test_a_file_labelled_in_a_terminal_compiles(tmp_path: Path, reflex: Reflex) -> None:
    """Twelve failures, two of each cause."""
    texts = ["HTTP 503 from the service", "which of the two did you mean", "I forgot the limit you gave", "no such parameter",
             "done, all tests pass", "the sum is off by one"]  # fmt: skip
    rows = [{"id": f"f{n}", "task": f"task {n}", "actual_outcome": f"{texts[n % 6]}, run {n}"} for n in range(12)]
    failures, labelled = write(tmp_path / "failures.jsonl", *rows), tmp_path / "labelled.jsonl"
    person = Terminal("label", failures, "--by", "ann", "--out", labelled)
    for _ in rows:
        person.child.expect(r"\d+/12  f(\d+)")
        person.label(CAUSES[int(person.child.match.group(1)) % 6])
    person.rest()
    done = reflex("compile", "root_cause", "--dataset", labelled, "--optimizer", "labeled_few_shot", "--out", tmp_path / "p",
                  "--run", tmp_path / "run", "--json")  # fmt: skip
    assert done.code == 0, done.err
    assert Path(done.json["artifact"]).exists()
    assert len(load_evalset(labelled, load_taxonomy()).rows) == 12


@pytest.mark.parametrize("command", ["label", "adjudicate"])
def test_without_a_terminal_there_is_nobody_to_ask(
    command: str, failures: Path, labelled: Path, reflex: Reflex
) -> None:
    """One sentence, and no file."""
    out = ["--out", labelled] if command == "label" else []
    assert "needs a terminal" in reflex("data", command, failures, "--by", "ann", *out).refusal
    assert not labelled.exists()


def test_back_gives_a_decided_row_back_as_it_was(failures: Path, labelled: Path) -> None:
    """A third annotator who changes their mind undoes nobody's decision; after a skip nothing changes either."""
    votes = [{"annotator": name, "root_cause": cause} for name, cause in (("ann", CAUSES[0]), ("ben", CAUSES[1]))]
    decided = [
        raw(n, root_cause=CAUSES[1], family=f"fam{n}", votes=votes, adjudication="ben: right") for n in (1, 2, 3)
    ]
    write(labelled, *decided)
    person = Terminal("label", failures, "--by", "cy", "--out", labelled)
    person.answer(r"1/3[\s\S]*root cause: .*quit", "s")
    person.answer(r"2/3[\s\S]*root cause: .*quit", "b")
    person.answer(r"1/3")
    person.label("reasoning_error")
    person.answer(r"2/3[\s\S]*root cause: .*quit", "b")
    person.answer(r"1/3[\s\S]*root cause: .*quit", "q")
    person.rest()
    assert [(row["root_cause"], row["adjudication"]) for row in read(labelled).values()] == [
        (CAUSES[1], "ben: right")
    ] * 3


def test_a_label_taken_back_leaves_a_file_that_can_be_gone_on_with(failures: Path, labelled: Path) -> None:
    """Also where it was the only one."""
    person = Terminal("label", failures, "--by", "ann", "--out", labelled)
    person.label("tool_failure")
    person.answer(r"2/3[\s\S]*root cause: .*quit", "b")
    person.answer(r"1/3[\s\S]*root cause: .*quit", "q")
    person.rest()
    again = Terminal("label", failures, "--by", "ann", "--out", labelled)
    again.answer(r"1/3[\s\S]*root cause: .*quit", "q")
    assert "0 labelled by ann, 3 left" in again.rest()


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([raw(1)], "a label without votes"),
        (
            [raw(1, task="another", votes=[{"annotator": "ben", "root_cause": CAUSES[0]}], root_cause=CAUSES[0])],
            "another failure",
        ),
    ],
)
def test_labels_that_would_be_lost_stop_it_before_the_first_question(
    rows: list[dict[str, Any]], said: str, failures: Path, labelled: Path
) -> None:
    """And the file is as it was."""
    write(labelled, *[{**row, "root_cause": CAUSES[0]} for row in rows])
    before = labelled.read_bytes()
    assert said in Terminal("label", failures, "--by", "ann", "--out", labelled).rest()
    assert labelled.read_bytes() == before
