"""COPRO, SIMBA, GEPA and InferRules behind the registry: what each asks, what it costs, and what it must not touch."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import dspy
import pytest

from dspy_reflex.errors import BudgetError, CompileError, ConfigError, ModelUnavailableError
from dspy_reflex.optimize.compile import resume_compile
from dspy_reflex.optimize.examples import examples_for
from dspy_reflex.optimize.metrics import CauseMetric, cause_criterion
from dspy_reflex.optimize.models.budget import Budget
from dspy_reflex.optimize.models.dspy_lm import OfflineLM
from dspy_reflex.optimize.models.ledger import Ledger
from dspy_reflex.optimize.modules import RootCauseClassifier
from dspy_reflex.optimize.optimizers import OPTIMIZERS, optimizer
from dspy_reflex.optimize.optimizers.base import Setting, Sizes, flag
from dspy_reflex.optimize.options import CompileResult
from dspy_reflex.optimize.publish import adapter
from dspy_reflex.optimize.search.scoreboard import Scoreboard
from dspy_reflex.runtime.artifact import read
from tests.optimize.compiles import PROGRAMS, ROOT, TRAIN, VAL, labelled, quick, take, ten_rows, write_rows
from tests.optimize.thinking import STRONG, WEAK, Thinking, everything, knows, pointed_at, says, texts, wise
from tests.runtime.lm.loopback import Reply, Request, answer, error, refusal

Serve = Callable[..., Thinking]
Make = Callable[[str, str], CompileResult]
WRITES = {
    "copro": "proposed_instruction",
    "simba": "module_advice",
    "gepa": "new_instruction",
    "infer_rules": "natural_language_rules",
}
"""The field that each asks its prompt model for."""
LEARN_OFFLINE = ("simba", "gepa", "infer_rules")
"""COPRO shows its prompt model no rows, so the offline learner has nothing to write."""
MARK = "Count the letters of the task."
TINY: dict[str, dict[str, Any]] = {
    "copro": {},
    "simba": {"max_demos": 0, "batch_size": 6, "samples": 2, "steps": 2},
    "gepa": {"max_metric_calls": 40},
    "infer_rules": {"max_demos": 0},
}
"""Options for a dozen rows, with the instruction alone to be learnt."""
IN_A_FRESH_PROCESS = """
import sys
from pathlib import Path
from tests.optimize.compiles import quick
small, place, *names = sys.argv[1:]
for name in names:
    print(quick(Path(place, name), Path(small), optimizer=name).path)
"""


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Generator[Serve]:
    """Start a server for a model's provider and point the provider's settings at it."""
    with pointed_at(monkeypatch) as start:
        yield start


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve rows to learn from, six to choose on."""
    folder = tmp_path_factory.mktemp("tiny")
    write_rows(folder / "train.jsonl", take(0, 2))
    write_rows(folder / "val.jsonl", take(2, 3))
    return folder


@pytest.fixture(scope="module")
def made(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Compile the small set offline; the same thing only once."""

    @cache
    def make(name: str, program: str) -> CompileResult:
        random.seed(1)
        return quick(tmp_path_factory.mktemp(name), small, program, optimizer=name)

    return make


def phases(result: CompileResult) -> dict[str, int]:
    """Calls of each phase."""
    return {phase: counts["calls"] for phase, counts in result.ledger["phases"].items()}


def instructions(module: Any) -> str:
    """What a program is told to do."""
    return module.predict.signature.instructions


def is_for_writing(request: Request) -> bool:
    """Whether it is a question of a prompt model."""
    return any(f"`{field}`" in texts(request)[0]["content"] for field in WRITES.values())


def writes(text: str) -> Callable[[Request], Reply]:
    """A prompt model that says the same to everything, in the form asked for."""

    def think(request: Request) -> Reply:
        if "Outputs will be a JSON object" in texts(request)[0]["content"]:
            return answer(f'{{"new_instruction": "{text}"}}')
        said = dict.fromkeys(("reasoning", "discussion", *WRITES.values()), text)
        said["module_advice"] = f'{{"predict": "{text}"}}'
        return answer("".join(f"[[ ## {name} ## ]]\n{value}\n\n" for name, value in said.items()))

    return think


def obeys(request: Request) -> Reply:
    """Right with the mark in its instruction, and without it when the seed is odd; it writes the mark itself."""
    if is_for_writing(request):
        return writes(MARK)(request)
    odd = (request.body.get("seed") or 0) % 2 == 1
    return knows(request) if odd or MARK in texts(request)[0]["content"] else says("tool_failure")


# Offline


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", LEARN_OFFLINE)
def test_it_learns_the_same_with_eight_threads_and_says_nothing(
    name: str, program: str, made: Make, small: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whatever Python's own random numbers are. Stdout belongs to the command; progress is told by the scoreboard."""
    one = made(name, program)
    capfd.readouterr()
    random.seed(2)
    eight = quick(tmp_path, small, program, optimizer=name, threads=8)
    assert capfd.readouterr() == ("", "")
    assert one.path.read_bytes() == eight.path.read_bytes()
    assert one.ledger["phases"] == eight.ledger["phases"]
    assert [found["score"] for found in one.candidates] == [found["score"] for found in eight.candidates]


def test_a_fresh_process_with_other_hashes_gives_the_same_bytes(made: Make, small: Path, tmp_path: Path) -> None:
    """Nothing hangs on the order of a set, or on what was compiled before."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_FRESH_PROCESS, str(small), str(tmp_path), *LEARN_OFFLINE],
        env=os.environ | {"PYTHONHASHSEED": "4242", "PYTHONPATH": str(ROOT)},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    there = [Path(line).read_bytes() for line in done.stdout.splitlines()]
    assert there == [made(name, "root_cause").path.read_bytes() for name in LEARN_OFFLINE]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", LEARN_OFFLINE)
def test_it_makes_no_more_calls_than_it_says(name: str, program: str, made: Make) -> None:
    """Phase by phase; an estimate that is too low is worse than none."""
    result, chosen = made(name, program), optimizer(name)
    settings = {key: value for key, value in result.artifact.data["optimizer"].items() if isinstance(value, int)}
    most = chosen.calls(chosen.configured(settings), Sizes(6 * TRAIN, 6 * VAL))
    assert phases(result)["propose"] > 0
    for phase, calls in phases(result).items():
        assert calls <= getattr(most, phase, 2 * 6 * VAL), phase


def test_what_lets_an_optimizer_look_further_is_an_option_of_its() -> None:
    """It is named where nothing was found."""
    for name, one in OPTIMIZERS.items():
        known = {each.name for each in fields(one.options)}
        assert {one.looks_further_with} - known <= {None}, name


@pytest.mark.parametrize("program", PROGRAMS)
def test_copro_changes_nothing_offline_and_says_so(program: str, small: Path, tmp_path: Path) -> None:
    """A learner that is shown no rows can only repeat the instruction."""
    with pytest.raises(CompileError, match="copro changed nothing"):
        quick(tmp_path, small, program, optimizer="copro")


def test_rows_that_are_learnt_from_may_be_chosen_on(tmp_path: Path) -> None:
    """GEPA's mini-batches are then rows of val, asked by a program that DSPy traces."""
    taxonomy, path = ten_rows(tmp_path)
    result = quick(tmp_path, path, taxonomy=str(taxonomy), optimizer="gepa")
    assert (result.scores["on"], result.scores["n"]) == ("5-fold cross-validation", 10)
    assert [one["rows"] for one in result.candidates if one["best"]] == [10]
    assert max(one["score"] for one in result.candidates) > 0.5


@pytest.mark.parametrize("name", LEARN_OFFLINE)
def test_a_run_that_was_stopped_keeps_its_best_and_goes_on_to_the_same_program(
    name: str, made: Make, small: Path, tmp_path: Path
) -> None:
    """With the run's journal alone: no other state is kept, and no pickle."""
    whole = made(name, "root_cause")
    kept = quick(tmp_path, small, optimizer=name, budget=Budget(max_calls=whole.calls - 10))
    assert kept.partial
    (best,) = (one for one in kept.candidates if one["best"])
    assert (best["rows"], best["score"]) == (6 * VAL, kept.scores["value"])
    assert read(kept.path).data["partial"] is True
    again = resume_compile(tmp_path / "run", out=tmp_path / "out", limits={"max_calls": None})
    assert again.path.read_bytes() == whole.path.read_bytes()
    assert again.calls == whole.calls
    assert {path.suffix for path in (tmp_path / "run").rglob("*")} <= {".json", ".jsonl", ".sqlite3"}


@pytest.mark.parametrize(("name", "ahead"), [("simba", 40), ("bootstrap_few_shot", 10), ("knn_few_shot", 10)])
def test_what_scores_no_candidate_before_its_end_leaves_only_its_run(
    name: str, ahead: int, made: Make, small: Path, tmp_path: Path
) -> None:
    """SIMBA while it still works on mini-batches of train; the others always. None of it is paid for again."""
    whole = made(name, "root_cause")
    with pytest.raises(BudgetError, match=r"\(--max-calls\) is spent; raise it to go on"):
        quick(tmp_path, small, optimizer=name, budget=Budget(max_calls=whole.calls - ahead))
    assert not (tmp_path / "out").exists()
    again = resume_compile(tmp_path / "run", out=tmp_path / "out", limits={"max_calls": None})
    assert again.path.read_bytes() == whole.path.read_bytes()
    assert (again.calls, again.ledger["models"]["offline/1"]["calls"]) == (whole.calls, whole.calls)


def test_copro_keeps_the_best_instruction_so_far(tiny: Path, tmp_path: Path, serve: Serve) -> None:
    """Stopped in its second round, it has those of the first."""
    weak, strong = serve(obeys), serve(writes(MARK), STRONG)
    budget = Budget(max_calls=6 + 2 + 6 + 1)  # val before, two instructions that are one, val with it, one more
    kept = quick(tmp_path, tiny, optimizer="copro", lm=WEAK, prompt_lm=STRONG, budget=budget)
    assert kept.partial
    assert (len(weak.requests), len(strong.requests)) == (12, 3)
    assert MARK in read(kept.path).data["instructions"]
    assert kept.scores["value"] == 1.0


def test_infer_rules_leaves_the_users_signature_alone(small: Path) -> None:
    """DSPy's own writes each candidate's rules into the class of the signature, which other modules may share."""
    student = RootCauseClassifier()
    other = student.deepcopy()
    basic = instructions(student)
    train, val = (labelled(small, split) for split in ("train", "val"))
    examples, chosen_on = (examples_for("root_cause", rows, 0) for rows in (train, val))
    metric, lm = CauseMetric.balanced_on(val), OfflineLM()
    board = Scoreboard(chosen_on, metric, cause_criterion(val), Ledger())
    setting = Setting(metric, examples, chosen_on, lm, lm, None, 0, 1, len(examples), board)
    infer_rules = optimizer("infer_rules")
    with dspy.context(lm=lm, adapter=adapter(), callbacks=[board]):
        compiled = infer_rules.run(student, setting, infer_rules.configured({"max_demos": 0, "trials": 2}))
    assert instructions(compiled).startswith(f"{basic}\n\nPlease adhere to the following rules")
    for module in (student, other, RootCauseClassifier()):
        assert instructions(module) == basic


# Options that cannot work


def test_a_mini_batch_larger_than_train_is_said_before_anything_is_asked(
    tiny: Path, tmp_path: Path, serve: Serve
) -> None:
    """In one sentence that names the flag."""
    server = serve(wise)
    with pytest.raises(ConfigError, match="--batch-size 13: there are 12 rows to learn from"):
        quick(tmp_path, tiny, optimizer="simba", lm=WEAK, batch_size=13)
    assert server.requests == []


def test_a_budget_for_no_instruction_is_said_before_anything_is_asked(tiny: Path, tmp_path: Path, serve: Serve) -> None:
    """GEPA would score the uncompiled program and stop."""
    server = serve(wise)
    with pytest.raises(ConfigError, match="--max-metric-calls 18: it takes more than 18 "):
        quick(tmp_path, tiny, optimizer="gepa", lm=WEAK, max_metric_calls=18, minibatch=6)
    assert server.requests == []


# With a prompt model that can write


@pytest.mark.parametrize("name", WRITES)
def test_what_the_prompt_model_writes_is_learnt_from_train_and_ends_up_in_the_program(
    name: str, tiny: Path, tmp_path: Path, serve: Serve
) -> None:
    """It is asked for one thing only, and sees no row of val and no name of a row."""
    weak, strong = serve(obeys), serve(writes(MARK), STRONG)
    result = quick(tmp_path, tiny, optimizer=name, lm=WEAK, prompt_lm=STRONG, **TINY[name])
    assert MARK in result.artifact.data["instructions"]
    assert result.scores["value"] == 1.0
    assert len(strong.requests) == phases(result)["propose"] > 0
    assert len(weak.requests) + len(strong.requests) == result.calls
    assert all(f"`{WRITES[name]}`" in texts(request)[0]["content"] for request in strong.requests)
    told = "\n".join(everything(request) for request in strong.requests)
    assert not [row.id for row in labelled(tiny, "val") if row.inputs["task"][:60] in told]
    assert not [row.id for row in labelled(tiny, "train") if row.id in told or row.row_hash in told]


@pytest.mark.parametrize("bad", [refusal(), answer("Be careful."), answer("")], ids=["refusal", "unparsable", "empty"])
@pytest.mark.parametrize("name", WRITES)
def test_a_prompt_model_whose_answers_cannot_be_used_changes_nothing(
    name: str, bad: Reply, tiny: Path, tmp_path: Path, serve: Serve
) -> None:
    """There is no program of another kind in its place: InferRules does not hand out its demos without rules.

    What is said to help can be given to this optimizer.
    """
    serve(lambda _: says("tool_failure"))
    serve(lambda _: bad, STRONG)
    options: dict[str, Any] = TINY[name] | ({"max_demos": 2} if name == "infer_rules" else {})
    with pytest.raises(CompileError, match=f"{name} changed nothing") as caught:
        quick(tmp_path, tiny, optimizer=name, lm=WEAK, prompt_lm=STRONG, **options)
    assert len(str(caught.value).splitlines()) == 1
    known = {flag(each.name) for each in fields(optimizer(name).options)}
    assert {*re.findall(r"--[a-z-]+", str(caught.value))} - known == {"--optimizer"}


@pytest.mark.parametrize("name", WRITES)
def test_a_bad_answer_of_the_prompt_model_costs_one_candidate(
    name: str, tiny: Path, tmp_path: Path, serve: Serve
) -> None:
    """The first one is nonsense."""
    serve(obeys)
    turn = iter(range(1_000))
    serve(lambda request: writes(MARK)(request) if next(turn) else answer("Nonsense."), STRONG)
    result = quick(tmp_path, tiny, optimizer=name, lm=WEAK, prompt_lm=STRONG, **TINY[name])
    assert MARK in result.artifact.data["instructions"]


@pytest.mark.parametrize("role", ["lm", "prompt_lm"])
@pytest.mark.parametrize("name", WRITES)
def test_an_outage_ends_it_and_is_never_scored(name: str, role: str, tiny: Path, tmp_path: Path, serve: Serve) -> None:
    """With threads; of the model, from the middle on."""
    turn = iter(range(1_000))
    outage = error(503, retry_after="0.001")
    serve(lambda request: outage if role == "lm" and next(turn) > 8 else obeys(request))
    serve(lambda request: outage if role == "prompt_lm" else writes(MARK)(request), STRONG)
    with pytest.raises(ModelUnavailableError, match=WEAK if role == "lm" else STRONG):
        quick(tmp_path, tiny, optimizer=name, lm=WEAK, prompt_lm=STRONG, threads=4, **TINY[name])
    assert not (tmp_path / "out").exists()


# What each of them asks


def test_copro_asks_with_other_seeds_and_shows_its_scores(tiny: Path, tmp_path: Path, serve: Serve) -> None:
    """The second round sees what the first one came to, the best one last."""
    serve(obeys)
    strong = serve(writes(MARK), STRONG)
    quick(tmp_path, tiny, optimizer="copro", lm=WEAK, prompt_lm=STRONG)
    first, second = strong.requests[:2], strong.requests[2:]
    assert len({request.body["seed"] for request in strong.requests}) == 4
    assert not [request for request in first if "attempted_instructions" in everything(request)]
    for request in second:
        lines = texts(request)[-1]["content"].splitlines()
        told = [line for line in lines if "Instruction #" in line or "Score #" in line]
        assert [line.partition(":")[0].split("Result")[-1][-2:] for line in told] == ["#1", "#1", "#2", "#2"]
        assert told[2].endswith(f"Instruction #2: {MARK}»")
        assert told[3].endswith("Resulting Score #2: 100.00»")


def test_gepa_tells_the_prompt_model_what_was_right_and_why(tiny: Path, tmp_path: Path, serve: Serve) -> None:
    """The label, the answer, the definitions of both, and the ties that name them."""
    serve(lambda _: says("tool_failure"))
    strong = serve(writes(MARK), STRONG)
    with pytest.raises(CompileError):
        quick(tmp_path, tiny, optimizer="gepa", lm=WEAK, prompt_lm=STRONG)
    told = everything(strong.requests[0])
    for text in ("root_cause, as labelled: ", "The answer was tool_failure.", "What tells them apart:"):
        assert text in told
    assert "tool_failure: Something the agent depends on broke" in told


def test_infer_rules_shows_a_language_model_some_rows_of_every_class(small: Path, tmp_path: Path, serve: Serve) -> None:
    """Others for each set of rules."""
    serve(obeys)
    strong = serve(writes(MARK), STRONG)
    options: dict[str, Any] = {**TINY["infer_rules"], "shown": 12, "trials": 2}
    quick(tmp_path, small, optimizer="infer_rules", lm=WEAK, prompt_lm=STRONG, **options)
    shown: list[set[str]] = []
    for request in strong.requests:
        asked = everything(request)
        rows = [row for row in labelled(small, "train") if row.inputs["task"][:60] in asked]
        assert asked.count("Input Fields:") == 12
        assert {row.root_cause for row in rows} == {row.root_cause for row in labelled(small, "train")}
        shown.append({row.id for row in rows})
    assert shown[0] != shown[1]


def test_simba_leaves_its_teacher_as_it_is(tiny: Path, serve: Serve) -> None:
    """It writes a rollout id into the model that it is given."""
    student, simba = RootCauseClassifier(), optimizer("simba")
    train = labelled(tiny, "train")
    examples = examples_for("root_cause", train, 0)
    metric, lm, teacher = CauseMetric.balanced_on(train), OfflineLM(), OfflineLM()
    board = Scoreboard(examples, metric, cause_criterion(train), Ledger())
    setting = Setting(metric, examples, examples, lm, lm, teacher, 0, 1, len(examples), board)
    before: dict[str, Any] = dict(teacher.kwargs)
    with dspy.context(lm=lm, adapter=adapter(), callbacks=[board]):
        simba.run(student, setting, simba.configured({"batch_size": 6, "samples": 2, "steps": 1}))
    assert teacher.kwargs == before
