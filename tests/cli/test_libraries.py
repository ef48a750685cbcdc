"""`dspy-reflex programs`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex import RootCauseClassifier, RuleProposer, load_program
from dspy_reflex.optimize.examples import examples_for
from dspy_reflex.optimize.models.dspy_lm import OfflineLM
from dspy_reflex.optimize.publish import adapter, publish
from dspy_reflex.optimize.search.knn import compile_knn
from dspy_reflex.runtime.artifact import digest_of, dumps, read
from tests.cli.runner import Reflex
from tests.optimize.compiles import labelled

dspy: Any = pytest.importorskip("dspy")


@pytest.fixture
def programs(in_empty_folder: Path, cause: Path, rule: Path) -> Path:
    """A folder `programs` with both, of which the root-cause program is current."""
    for path in (cause, rule):
        artifact = read(path)
        folder = in_empty_folder / "programs" / artifact.program
        folder.mkdir(parents=True)
        (folder / path.name).write_bytes(path.read_bytes())
    current = in_empty_folder / "programs" / "root_cause" / "current.json"
    current.write_text(json.dumps({"offline/1": read(cause).version}), encoding="utf-8")
    return in_empty_folder / "programs"


def test_list_names_every_program_and_the_current_ones(programs: Path, cause: Path, rule: Path, reflex: Reflex) -> None:
    """With model, score and path."""
    rows = {row["name"]: row for row in reflex("programs", "list", "--json").json}
    assert (rows[read(cause).name]["current"], rows[read(rule).name]["current"]) == (True, False)
    assert rows[read(cause).name]["model"] == "offline/1"
    assert Path(rows[read(cause).name]["path"]).read_bytes() == cause.read_bytes()
    out = reflex("programs", "list").out
    assert f"* {read(cause).name}" in out
    assert read(rule).score in out


def test_a_damaged_program_does_not_hide_the_others(programs: Path, cause: Path, reflex: Reflex) -> None:
    """It is named."""
    (programs / "root_cause" / "0123456789ab.json").write_text("{}", encoding="utf-8")
    done = reflex("programs", "list")
    assert read(cause).name in done.out
    assert "0123456789ab.json" in done.out + done.err


def test_show_says_what_a_program_is_made_of(cause: Path, reflex: Reflex) -> None:
    """Data, demos by id, labels, instructions; as JSON, the file itself."""
    data = read(cause).data
    out = reflex("programs", "show", cause).out
    for text in (read(cause).name, "30 train, 18 val", data["demos"][0]["id"], "tool_failure", data["instructions"]):
        assert text in out
    assert reflex("programs", "show", cause, "--json").json == data


def test_verify_finds_every_program_equal_to_dspy(cause: Path, rule: Path, reflex: Reflex) -> None:
    """Byte for byte, on random inputs."""
    for path in (cause, rule):
        found = reflex("programs", "verify", path, "--inputs", 50, "--json").json
        assert found == {"program": read(path).name, "inputs": 50, "dspy": dspy.__version__, "equal": True}
    assert "50 inputs render byte for byte" in reflex("programs", "verify", cause, "--inputs", 50).out


def test_verify_finds_a_prompt_that_dspy_would_not_send(cause: Path, reflex: Reflex, tmp_path: Path) -> None:
    """Sealed with a digest that fits, but with one word more."""
    data = {name: value for name, value in read(cause).data.items() if name != "digest"}
    data = {**data, "tail": f"{data['tail']} Please."}
    path = tmp_path / "polite.json"
    path.write_text(json.dumps({**data, "digest": digest_of(data)}), encoding="utf-8")
    assert "input 0 renders differently" in reflex("programs", "verify", path).refusal


@pytest.mark.filterwarnings("error")
def test_the_exported_state_is_what_dspy_loads(
    small: Path, cause: Path, rule: Path, reflex: Reflex, tmp_path: Path
) -> None:
    """Without a warning, and the module answers as the artefact does."""
    rows = labelled(small, "test")[:8]
    modules: list[tuple[Path, Any]] = [(cause, RootCauseClassifier()), (rule, RuleProposer())]
    for path, module in modules:
        done = reflex("programs", "export", path, "--dspy", "--out", tmp_path / "state.json", "--json")
        assert done.json == {"program": read(path).name, "out": str(tmp_path / "state.json")}
        module.load(str(tmp_path / "state.json"))
        assert len(module.predict.demos) == len(read(path).data["demos"])
        assert module.predict.signature.instructions == read(path).data["instructions"]
        if path == cause:
            program = load_program("root_cause", path=cause)
            with dspy.context(lm=OfflineLM(), adapter=adapter()):
                theirs = [module(**row.inputs).root_cause for row in rows]
            assert theirs == [program(row.failure).root_cause for row in rows]


@pytest.fixture
def retrieving(small: Path, tmp_path: Path) -> Path:
    """A program that retrieves its examples."""
    trainset = examples_for("root_cause", labelled(small, "train"), 0)
    path = tmp_path / "retrieving.json"
    path.write_text(
        dumps(publish(compile_knn(RootCauseClassifier(), trainset, 3), trainset=trainset)), encoding="utf-8"
    )
    return path


def test_a_program_that_retrieves_is_shown_verified_and_not_exported_without_its_examples(
    retrieving: Path, reflex: Reflex, tmp_path: Path
) -> None:
    """A state of DSPy's has no room for them."""
    assert "the 3 nearest of 30 examples" in reflex("programs", "show", retrieving).out
    assert reflex("programs", "verify", retrieving, "--inputs", 50, "--json").json["equal"]
    state = tmp_path / "state.json"
    assert "retrieves its examples" in reflex("programs", "export", retrieving, "--dspy", "--out", state).refusal
    assert not state.exists()


def test_verify_finds_an_index_that_leads_to_other_examples(retrieving: Path, reflex: Reflex) -> None:
    """Sealed with a digest that fits, but every word speaks for the same example."""
    data = json.loads(retrieving.read_text(encoding="utf-8"))
    data["retrieval"]["index"] = dict.fromkeys(data["retrieval"]["index"], "7:50")
    data["digest"] = digest_of(data)
    retrieving.write_text(json.dumps(data), encoding="utf-8")
    assert "renders differently" in reflex("programs", "verify", retrieving).refusal


@pytest.mark.parametrize("command", ["show", "verify", "export"])
def test_a_damaged_or_missing_program_is_one_sentence(
    command: str, cause: Path, reflex: Reflex, tmp_path: Path
) -> None:
    """And no state file is written from it."""
    more = ("--dspy", "--out", tmp_path / "state.json") if command == "export" else ()
    assert "nope.json: no such program file" in reflex("programs", command, "nope.json", *more).refusal
    bent = tmp_path / "bent.json"
    bent.write_text(cause.read_text(encoding="utf-8").replace("tool_failure", "tool_fault"), encoding="utf-8")
    assert "changed after it was compiled" in reflex("programs", command, bent, *more).refusal
    assert not (tmp_path / "state.json").exists()


@pytest.mark.usefixtures("in_empty_folder")
def test_a_guide_is_written_made_current_and_noted(reflex: Reflex) -> None:
    """Of another label set later; who wonders finds both in the history."""
    first, second = (
        reflex("programs", "guide", "root_cause", "--taxonomy", name, "--json") for name in ("six", "mast")
    )
    moves = reflex("programs", "history", "root_cause", "--json").json
    assert [move["action"] for move in moves] == ["guide", "guide"]
    assert [Path(done.json["artifact"]).stem for done in (first, second)] == [move["to"] for move in moves]
    assert moves[1]["from"] == moves[0]["to"]
    assert "label set mast" in moves[1]["reason"]
    assert load_program("root_cause", path=second.json["artifact"]).artifact.data["demos"] == []
