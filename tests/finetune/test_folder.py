"""From the store to a folder: what `datasets` loads, the same bytes every time, whole or not at all, nothing withdrawn."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import datasets
from dspy_reflex.errors import ExportError
from dspy_reflex.finetune.book import OTHERS
from dspy_reflex.finetune.card import SIGNAL
from dspy_reflex.finetune.check import check
from dspy_reflex.finetune.folder import SUMS, Earlier, write
from dspy_reflex.finetune.formats.registry import NAMES, format_of
from dspy_reflex.finetune.plan import Plan
from dspy_reflex.finetune.row import Row
from dspy_reflex.finetune.rows.behave import Shares
from dspy_reflex.finetune.sink import sha256_of
from dspy_reflex.finetune.source import Source
from dspy_reflex.store import forget, proposals
from dspy_reflex.store.store import Store
from tests import postgres
from tests.finetune.taught import OPEN, OTHER, RULE, bytes_in, drawn, exported, failed, known, rows_in, ruled, text_in

ROOT = Path(__file__).parents[2]


def taught(store: Store, *texts: str, rule: str = RULE) -> str:
    """An approved rule with corrected failures; its id."""
    return ruled(store, rule, "kept", *failed(store, *texts), correction="Waited, the right way.").id


def manifest(folder: Path) -> dict[str, Any]:
    """What an export says of itself."""
    return json.loads((folder / "manifest.json").read_text())


def ids_in(folder: Path) -> set[str]:
    """Ids of the rows of an export."""
    return {json.loads(line)["id"] for line in (folder / "lineage.jsonl").read_text().splitlines()}


def test_a_store_with_nothing_approved_writes_nothing(store: Store, tmp_path: Path) -> None:
    ruled(store, RULE, "pending", *failed(store, "x"))
    assert exported(store, tmp_path / "out").contents.rows == {}
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", NAMES)
def test_every_format_is_a_folder_that_datasets_loads(store: Store, tmp_path: Path, form: str) -> None:
    taught(store, "a", "ü\u2028😀", "\x00 odd")
    told = exported(store, tmp_path / "out", form, Plan(split=0)).contents
    assert len(ids_in(tmp_path / "out")) == sum(told.rows.values())
    for kind in {where.partition("/")[0] for where in told.rows}:
        loaded: Any = datasets.load_dataset(str(tmp_path / "out"), kind, cache_dir=str(tmp_path / "cache"))
        found = {f"{kind}/{split}": len(rows) for split, rows in loaded.items()}
        assert found == {where: n for where, n in told.rows.items() if where.startswith(f"{kind}/")}


@pytest.mark.parametrize("form", NAMES)
def test_what_is_written_passes_the_check_and_reads_back(store: Store, tmp_path: Path, form: str) -> None:
    taught(store, "a", "ü\u2028😀", "\x00 odd")
    told = exported(store, tmp_path / "out", form, Plan(split=0)).contents
    rows = {row.id: row for row in drawn(store, Plan(split=0))}
    places = [json.loads(line) for line in (tmp_path / "out" / "lineage.jsonl").read_text().splitlines()]
    for file, n in told.rows.items():
        path = tmp_path / "out" / "data" / f"{file}.{format_of(form).suffix}"
        assert check(path, format_of(form)) == (n, [])
        kind = file.partition("/")[0]
        read = format_of(form).shapes[kind].read  # type: ignore[index]
        back = [read(row) for row in rows_in(path)]
        ids = [one["id"] for one in places if f"{one['kind']}/{one['split']}" == file]
        assert [(one.prompt, one.rejected, one.label) for one in back] == [
            (rows[one].prompt, rows[one].rejected, rows[one].label) for one in ids
        ]


def test_checksums_are_those_of_all_other_files(store: Store, tmp_path: Path) -> None:
    taught(store, "a")
    exported(store, tmp_path / "out")
    lines = [line.split("  ") for line in (tmp_path / "out" / SUMS).read_text().splitlines()]
    assert {name: digest for digest, name in lines} == {
        name: sha256_of(tmp_path / "out" / name) for name in bytes_in(tmp_path / "out") if name != SUMS
    }


def test_each_row_has_a_line_with_licence_split_and_lineage(store: Store, tmp_path: Path) -> None:
    rule = taught(store, "a")
    exported(store, tmp_path / "out", plan=Plan(tasks=("behave",), split=0), licence="cc0-1.0")
    lines = [json.loads(line) for line in (tmp_path / "out" / "lineage.jsonl").read_text().splitlines()]
    assert [(one["kind"], one["line"]) for one in lines] == [
        ("sft", 1), ("preference", 1), ("unpaired", 1), ("unpaired", 2),
    ]  # fmt: skip
    assert {(one["licence"], one["split"], one["task"], *one["lineage"]["proposals"]) for one in lines} == {
        ("cc0-1.0", "train", "behave", rule)
    }


def test_card_and_manifest_say_what_is_in_it_and_what_is_not(store: Store, tmp_path: Path) -> None:
    ruled(store, RULE, "kept", *failed(store, "a", "b"), correction="Ask anna.b@firma.de")
    told = exported(store, tmp_path / "out", plan=Plan(split=0, shares=Shares(0.3, 0.1)), licence="cc0-1.0").contents
    card, said = (tmp_path / "out" / "README.md").read_text(), manifest(tmp_path / "out")
    assert "license: cc0-1.0\n" in card
    assert "- The rule is left out of the prompt in 30% of corrected situations.\n- 10% of them" in card
    assert "| sft/train | " in card
    assert SIGNAL in card
    assert f"- email: {told.redacted['email']}\n" in card
    assert "which trl has no words for: 2\n" in card
    assert (said["plan"]["shares"], said["redacted"], said["withdrawn"]) == (
        {"without_rule": 0.3, "controls": 0.1}, told.redacted, [],
    )  # fmt: skip


def test_tokens_are_counted_and_limits_of_a_target_are_said(store: Store, tmp_path: Path) -> None:
    taught(store, "a")
    found = exported(store, tmp_path / "out", "bedrock", Plan(split=0))
    spread = found.contents.tokens["sft"]
    assert spread["least"] <= spread["median"] <= spread["p95"] <= spread["most"] <= spread["total"]
    assert found.warnings == (
        f"bedrock wants at least 32 rows to train on; sft has {found.contents.rows['sft/train']}",
    )


def test_the_same_store_gives_the_same_bytes(store: Store, tmp_path: Path) -> None:
    taught(store, "a", "b")
    for form in NAMES:
        for name in ("one", "two", "two"):
            exported(store, tmp_path / name / form, form)
    assert bytes_in(tmp_path / "one") == bytes_in(tmp_path / "two")


def test_a_row_with_a_turn_that_says_nothing_is_left_out(store: Store, tmp_path: Path) -> None:
    ruled(store, RULE, "kept", *failed(store, " "), correction="It works.")
    told = exported(store, tmp_path / "out", plan=Plan(tasks=("behave",), split=0)).contents
    assert told.rows == {"sft/train": 1, "unpaired/train": 1}
    assert told.left_out["rows that do not fit: a turn says nothing"] == 2


def test_only_what_is_new_can_be_exported(store: Store, tmp_path: Path) -> None:
    first = taught(store, "a")
    exported(store, tmp_path / "one")
    second = taught(store, "b", rule=OTHER)
    found = exported(store, tmp_path / "two", new_since=tmp_path / "one")
    exported(store, tmp_path / "all")
    ids = {name: ids_in(tmp_path / name) for name in ("one", "two", "all")}
    assert found.contents.left_out[OTHERS] == len(ids["one"])
    assert ids["one"] & ids["two"] == set()
    assert ids["all"] == ids["one"] | ids["two"] != ids["one"]
    assert manifest(tmp_path / "two")["rules"] == [second] != [first]


def test_an_export_of_what_is_new_says_what_was_withdrawn_from_the_other(store: Store, tmp_path: Path) -> None:
    rule = taught(store, "a")
    exported(store, tmp_path / "one")
    _revert(store, rule)
    taught(store, "b", rule=OTHER)
    assert exported(store, tmp_path / "two", new_since=tmp_path / "one").contents.withdrawn == (rule,)


@pytest.mark.parametrize(("other", "why"), [("out", "what is new since itself"), ("none", "there is no such export")])
def test_what_cannot_be_the_other_export_is_told(store: Store, tmp_path: Path, other: str, why: str) -> None:
    with pytest.raises(ExportError, match=why):
        exported(store, tmp_path / "out", new_since=tmp_path / other)


def test_a_reverted_rule_is_gone_from_the_next_export_which_says_so_from_then_on(store: Store, tmp_path: Path) -> None:
    rule, stays = taught(store, "a"), taught(store, "b", rule=OTHER)
    first = exported(store, tmp_path / "out")
    _revert(store, rule)
    second = exported(store, tmp_path / "out")
    assert (set(first.rules), second.rules) == ({rule, stays}, (stays,))
    assert (second.contents.withdrawn, second.gone > 0, second.added) == ((rule,), True, 0)
    before = bytes_in(tmp_path / "out")
    assert rule in manifest(tmp_path / "out")["withdrawn"]
    assert rule in (tmp_path / "out" / "README.md").read_text()
    assert RULE not in text_in(tmp_path / "out")
    exported(store, tmp_path / "out")
    assert bytes_in(tmp_path / "out") == before


def test_if_every_rule_was_reverted_no_row_stays(store: Store, tmp_path: Path) -> None:
    rule = taught(store, "a")
    exported(store, tmp_path / "out")
    _revert(store, rule)
    assert exported(store, tmp_path / "out").gone > 0
    assert not (tmp_path / "out" / "data").exists()
    assert manifest(tmp_path / "out")["withdrawn"] == [rule]
    assert RULE not in text_in(tmp_path / "out")


def test_a_rule_that_is_only_not_wanted_now_is_not_withdrawn(store: Store, tmp_path: Path) -> None:
    taught(store, "a")
    stays = taught(store, "b", rule=OTHER)
    exported(store, tmp_path / "out")
    found = exported(store, tmp_path / "out", plan=Plan(rules=(stays,)))
    assert (found.contents.withdrawn, found.rules, found.gone > 0) == ((), (stays,), True)


def test_a_dry_run_counts_what_would_be_and_writes_nothing(store: Store, tmp_path: Path) -> None:
    taught(store, "a")
    counted = exported(store, tmp_path / "out", dry_run=True)
    assert not (tmp_path / "out").exists()
    assert exported(store, tmp_path / "out") == counted
    forgotten = taught(store, "b", rule=OTHER)
    before = bytes_in(tmp_path / "out")
    assert forgotten in exported(store, tmp_path / "out", dry_run=True).rules
    assert bytes_in(tmp_path / "out") == before


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_folder_of_something_else_is_left_alone(store: Store, tmp_path: Path, dry_run: bool) -> None:
    taught(store, "a")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("my life's work")
    (tmp_path / "file").write_text("a file")
    for name in ("out", "file"):
        with pytest.raises(ExportError, match="no export of ours"):
            exported(store, tmp_path / name, dry_run=dry_run)
    assert (tmp_path / "out" / "thesis.tex").read_text() == "my life's work"


def test_the_folder_one_is_in_is_not_replaced(store: Store, in_empty_folder: Path) -> None:
    taught(store, "a")
    with pytest.raises(ExportError, match="the folder you are in"):
        exported(store, Path())


def test_an_empty_folder_may_be_used(store: Store, tmp_path: Path) -> None:
    taught(store, "a")
    (tmp_path / "out").mkdir()
    assert exported(store, tmp_path / "out").added > 0


class _Full(Source):
    """Rows until the disk is full."""

    def __iter__(self) -> Iterator[Row]:
        """One row, and no more."""
        yield next(super().__iter__())
        raise OSError(28, "No space left on device")


def test_an_export_that_cannot_end_leaves_the_former_one(store: Store, tmp_path: Path) -> None:
    taught(store, "a")
    exported(store, tmp_path / "out")
    before = bytes_in(tmp_path)
    with store.read() as connection:
        source = _Full(connection, Plan(), OPEN)
        with pytest.raises(ExportError, match="No space left"):
            write(source, format_of("trl"), tmp_path / "out", Plan(), "mit", but=Earlier(), dry_run=False)
    assert bytes_in(tmp_path / "out") == {name[4:]: told for name, told in before.items() if name.startswith("out/")}
    assert list(tmp_path.glob(".out*")) == []


def test_a_disk_that_is_full_is_told(store: Store, tmp_path: Path) -> None:
    taught(store, "a")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ExportError, match="cannot be written"):
        exported(store, tmp_path / "file" / "out")


def test_a_kill_leaves_the_former_export_or_the_new_one(store: Store, tmp_path: Path) -> None:
    """At three moments of writing; what is left behind is gone after the next."""
    taught(store, *(f"outcome {place}" for place in range(40)))
    exported(store, tmp_path / "out")
    before = bytes_in(tmp_path / "out")
    taught(store, "b", rule=OTHER)
    for wait_s in (0.0, 0.02, 0.05):
        _killed(tmp_path, wait_s)
        assert RULE in text_in(tmp_path / "out") + text_in(tmp_path / ".out.old")
    after = exported(store, tmp_path / "out")
    assert len(bytes_in(tmp_path / "out")) == len(before)
    assert len(after.rules) == 2
    assert list(tmp_path.glob(".out*")) == []


def test_a_former_export_that_a_kill_left_aside_counts(store: Store, tmp_path: Path) -> None:
    rule = taught(store, "a")
    exported(store, tmp_path / "out")
    (tmp_path / "out").rename(tmp_path / ".out.old")
    _revert(store, rule)
    assert exported(store, tmp_path / "out").contents.withdrawn == (rule,)


def test_malformed_rows_are_listed_with_their_line(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    asked, answered = [{"role": "user", "content": "q"}], [{"role": "assistant", "content": "a"}]
    good = json.dumps({"prompt": asked, "completion": answered})
    pair = {"prompt": asked, "chosen": answered, "rejected": asked}
    file.write_text("\n".join([good, "{", "null", '{"prompt": "x"}', good, json.dumps(pair)]) + "\n")
    rows, problems = check(file, format_of("trl"))
    assert rows == 6
    assert [one.removeprefix(f"{file}:").split(":")[0] for one in problems] == ["2", "3", "4", "6"]
    assert problems[-1].endswith(":6: rejected.0.role: Input should be 'assistant'")


def test_a_parquet_file_is_checked_too(store: Store, tmp_path: Path) -> None:
    taught(store, "a")
    exported(store, tmp_path / "out", "parquet", Plan(split=0))
    file = tmp_path / "out" / "data" / "sft" / "train.parquet"
    rows, problems = check(file, format_of("trl"))
    assert (rows, len(problems)) == (rows, rows)
    (tmp_path / "odd.parquet").write_bytes(b"not one")
    with pytest.raises(ExportError, match="is no Parquet file"):
        check(tmp_path / "odd.parquet", format_of("parquet"))
    with pytest.raises(ExportError, match="cannot be read"):
        check(tmp_path, format_of("trl"))


def test_a_forgotten_failure_takes_its_rows_along(store: Store, tmp_path: Path) -> None:
    one, other = failed(store, "Forget this outcome", "Keep this one")
    ruled(store, RULE, "kept", one, other, correction={one.id: "Forget this answer", other.id: "Waited."})
    exported(store, tmp_path / "out")
    with store.write() as connection:
        forget.forget(connection, one.id, actor="ada", reason="asked to")
    assert exported(store, tmp_path / "out").gone > 0
    assert "Forget this" not in text_in(tmp_path / "out")
    assert one.id not in text_in(tmp_path / "out")
    assert "Keep this one" in text_in(tmp_path / "out")


def test_postgresql_gives_the_same_kinds_of_rows(postgresql: str, tmp_path: Path) -> None:
    with Store(postgres.database(postgresql)) as store:
        taught(store, "a", "b")
        (third,) = failed(store, "c")
        known(store, third, "tool_failure")
        rows = exported(store, tmp_path / "out", "parquet", Plan(split=0)).contents.rows
        assert rows == {"preference/train": 2, "rewarded/train": 2, "sft/train": 9, "unpaired/train": 5}
        later = drawn(store, Plan(split=third.at))
        assert {row.split for row in later} == {"train"}


def _revert(store: Store, rule: str) -> None:
    with store.write() as connection:
        proposals.move(connection, proposals.get(connection, rule, lock=True), "reverted", actor="ada", action="revert")


def _killed(folder: Path, wait_s: float) -> None:
    """Export in a process of its own, and kill it a moment after it began to write."""
    program = (
        "import sys; from pathlib import Path\n"
        "from dspy_reflex.store.store import Store; from tests.finetune.taught import exported\n"
        "with Store(sys.argv[1]) as store: exported(store, Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", program, f"sqlite:///{folder / 'store.db'}", str(folder / "out")]
    process = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL)
    while process.poll() is None and not (folder / ".out.new").exists():
        time.sleep(0.001)
    time.sleep(wait_s)
    process.send_signal(signal.SIGKILL)
    process.wait()
