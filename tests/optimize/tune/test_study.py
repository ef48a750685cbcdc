"""Whole studies: real compiles, real workers, a real database, and a worker that is killed."""

from __future__ import annotations

import json
import socket
from collections import Counter
from pathlib import Path

import pytest

from dspy_reflex.errors import CompileError, ConfigError, ModelNotConfiguredError
from dspy_reflex.optimize.tune.outcome import Outcome
from dspy_reflex.optimize.tune.space import Space
from dspy_reflex.optimize.tune.study import tune
from tests import postgres
from tests.optimize.thinking import WEAK, pointed_at, wise
from tests.optimize.tune.studies import ONE, go, options, start, until


def check_accounts(found: Outcome, planned: int) -> None:
    """Every trial that was planned ended in one way, and every one that was left was run again."""
    counts = found.counts
    assert counts["complete"] + counts["pruned"] + counts["failed"] == planned
    assert counts["running"] == counts["waiting"] == 0
    again = [one for one in found.tried if one.again is not None]
    assert len(again) == counts["retried"]
    assert len(found.tried) == planned + counts["retried"] + counts["surplus"]


@pytest.mark.parametrize(("kind", "workers"), [("postgresql", 4), ("journal", 2)])
def test_several_workers_share_a_study_and_one_of_them_is_killed(
    kind: str, workers: int, small: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """SIGKILL in the middle of a compile: its trial is run again by another one, and none is lost."""
    trials = workers + 2
    storage = f"journal:{tmp_path / 'a.journal'}"
    if kind == "postgresql":
        storage = postgres.database(request.getfixturevalue("postgresql"))
    out = tmp_path / "out"
    victim, *others = [start(small, storage, trials, out) for _ in range(workers)]
    for each in (victim, *others):
        go(each)
    left = int(until(victim, "rows to learn from").partition(":")[0].removeprefix("trial-"))
    victim.kill()
    victim.communicate()
    told = [each.communicate()[0] for each in others]
    assert [each.returncode for each in others] == [0] * len(others), told

    found = tune(options(small, storage, trials), out=out)
    check_accounts(found, trials)
    assert found.counts["complete"] == trials
    assert found.tried[left].state == "retried"
    again = [one for one in found.tried if one.again == left][-1]
    assert (again.state, again.choices) == ("complete", found.tried[left].choices)
    assert len({one.worker for one in found.tried}) >= workers - 1
    assert (out / "pareto.png").read_bytes().startswith(b"\x89PNG")
    report = (out / "report.md").read_text(encoding="utf-8")
    assert "![The front](pareto.png)" in report
    assert f"| {left} | retried |" in report
    assert f"| {again.number} | complete | {left} |" in report


def test_what_a_dead_worker_has_paid_for_is_not_paid_for_again(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one who takes over goes on in the same folder; only the call that was on its way is made twice."""
    storage, out = f"journal:{tmp_path / 'a.journal'}", tmp_path / "out"
    with pointed_at(monkeypatch) as serve:
        server = serve(wise)
        victim, other = (start(small, storage, 1, out, WEAK) for _ in range(2))
        go(victim)
        while len(server.requests) < 8:
            assert victim.poll() is None
        go(other)
        victim.kill()
        victim.communicate()
        told, _ = other.communicate()
    assert other.returncode == 0, told
    asked = Counter(json.dumps(request.body, sort_keys=True) for request in server.requests)
    assert sum(asked.values()) - len(asked) <= 1
    found = json.loads((out / "study.json").read_text(encoding="utf-8"))
    assert [one["state"] for one in found["tried"]] == ["retried", "complete"]
    assert found["tried"][1]["calls"] == len(asked)


def test_a_finished_study_asks_nothing_and_tells_the_same(small: Path, tmp_path: Path) -> None:
    """Also elsewhere, where the runs are not."""
    storage = f"journal:{tmp_path / 'a.journal'}"
    said: list[str] = []
    first = tune(options(small, storage, 3, space=ONE), out=tmp_path / "here", say=said.append)
    assert said
    said.clear()
    second = tune(options(small, storage, 3, space=ONE), out=tmp_path / "there", say=said.append)
    assert (second, said) == (first, [])
    for name in ("report.md", "study.json", "pareto.png"):
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == ["pareto.png", "report.md", "study.json"]


def test_no_trial_makes_a_program_current_or_reads_a_test_row(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written outside --out and the storage, and the programs know no test row."""
    monkeypatch.chdir(tmp_path)
    unseen = {json.loads(line)["id"] for line in (small / "test.jsonl").read_text().splitlines()}
    found = tune(options(small, f"journal:{tmp_path / 'a.journal'}", 2), out=tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.journal", "out"]
    for one in found.tried:
        run = tmp_path / "out" / (one.run or "")
        result = json.loads((run / "result.json").read_text())
        assert (result["program"], result["calls"], result["scores"]["value"]) == (one.program, one.calls, one.score)
        told = [json.loads(line)["id"] for line in (run / "predictions.jsonl").read_text().splitlines()]
        assert not unseen & {*told}


def test_a_report_names_no_machine_and_no_path(small: Path, tmp_path: Path) -> None:
    """It is kept and shown; the storage alone knows who worked where."""
    out = tmp_path / "out"
    tune(options(small, f"journal:{tmp_path / 'a.journal'}", 2), out=out)
    for name in ("report.md", "study.json"):
        text = (out / name).read_text(encoding="utf-8")
        assert str(tmp_path) not in text
        assert socket.gethostname() not in text
    assert "Uncompiled, offline scores 0." in (out / "report.md").read_text(encoding="utf-8")
    assert "no language model" in (out / "report.md").read_text(encoding="utf-8")


def test_a_study_that_asks_something_else_is_not_joined(small: Path, tmp_path: Path) -> None:
    """What differs is named, and no trial is begun."""
    storage = f"journal:{tmp_path / 'a.journal'}"
    tune(options(small, storage, 1), out=tmp_path / "out")
    with pytest.raises(ConfigError, match="'a-study' was begun with other optimizers; join it"):
        tune(options(small, storage, 5, space=ONE), out=tmp_path / "out")
    other = tmp_path / "other"
    other.mkdir()
    for name in ("train.jsonl", "val.jsonl"):
        (other / name).write_text("".join((small / name).read_text().splitlines(keepends=True)[:-6]), encoding="utf-8")
    with pytest.raises(ConfigError, match="begun with other dataset, rows; join it"):
        tune(options(other, storage, 5), out=tmp_path / "out")


def test_a_folder_with_another_study_s_runs_is_left_alone(small: Path, tmp_path: Path) -> None:
    """A run of other settings must not be taken for this one's."""
    tune(options(small, f"journal:{tmp_path / 'a.journal'}", 1), out=tmp_path / "out")
    with pytest.raises(ConfigError, match=r"trial-0: holds another study's run; name another --out"):
        tune(
            options(small, f"journal:{tmp_path / 'b.journal'}", 1, space=Space(("bootstrap_few_shot",), ("offline",))),
            out=tmp_path / "out",
        )


def test_models_that_are_not_set_up_are_said_before_a_study_is_begun(small: Path, tmp_path: Path) -> None:
    """Nothing is written."""
    with pytest.raises(ModelNotConfiguredError, match="OPENAI_API_KEY"):
        tune(options(small, f"journal:{tmp_path / 'a.journal'}", 1, lm="openai/gpt-4o"), out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_study_without_a_single_score_says_why(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an error, with the reasons; the report is written all the same."""
    with pointed_at(monkeypatch) as serve:
        from tests.runtime.lm.loopback import refusal

        serve(lambda _: refusal())
        with pytest.raises(CompileError, match="none of 1 trials has a score: "):
            tune(options(small, f"journal:{tmp_path / 'a.journal'}", 1, lm=WEAK), out=tmp_path / "out")
    assert "| 0 | pruned |" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
