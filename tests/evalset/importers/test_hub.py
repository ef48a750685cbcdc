"""Data sets laid out as on the Hugging Face hub, from a folder: nothing is fetched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import datasets
from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.importers.registry import import_failures
from tests.evalset.importers.published import agentrx_annotation, agentrx_run, trail_error, trail_trace, write

CARD = """\
---
configs:
  - config_name: default
    data_files: [{split: tau_retail, path: tau_retail.jsonl}]
  - config_name: trajectories
    data_files: [{split: tau_retail, path: tau_retail_dataset.jsonl}]
---
"""

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the library keeps of a data set goes to a scratch folder."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()


@pytest.fixture
def trail(tmp_path: Path) -> Path:
    """TRAIL as on the hub: a split a benchmark, trace and annotations as texts."""
    folder = tmp_path / "trail"
    for split, name in (("gaia", "t1"), ("swe_bench", "t2")):
        marks = {"errors": [trail_error("Language-only")]}
        line = {"trace": json.dumps(trail_trace(name)), "labels": json.dumps(marks)}
        write(folder / f"{split}.jsonl", [line])
    splits = "".join(f"{{split: {name}, path: {name}.jsonl}}, " for name in ("gaia", "swe_bench"))
    (folder / "README.md").write_text(f"---\nconfigs:\n- {{config_name: default, data_files: [{splits}]}}\n---\n")
    return folder


def test_all_splits_of_a_data_set_are_read(trail: Path) -> None:
    found = import_failures("trail", f"hf:{trail}")
    assert [row["id"] for row in found.rows] == ["trail-t1-id-call", "trail-t2-id-call"]


def test_one_split_of_a_data_set_is_read(trail: Path) -> None:
    (row,) = import_failures("trail", f"hf:{trail}:swe_bench").rows
    assert row["id"] == "trail-t2-id-call"


def test_a_split_that_is_not_there_is_said_with_those_that_are(trail: Path) -> None:
    with pytest.raises(DatasetError, match="no rows; the data set has default/gaia, default/swe_bench"):
        import_failures("trail", f"hf:{trail}:train")


def test_configurations_that_belong_together_are_joined(tmp_path: Path) -> None:
    """AgentRx has annotations in one and runs in another."""
    folder = tmp_path / "agentrx"
    write(folder / "tau_retail.jsonl", [agentrx_annotation("12")])
    write(folder / "tau_retail_dataset.jsonl", [agentrx_run()])
    (folder / "README.md").write_text(CARD)
    assert import_failures("agentrx", f"hf:{folder}").labels == {"Instruction/Plan Adherence Failure": 1}


def test_a_table_may_come_from_the_hub(tmp_path: Path) -> None:
    write(tmp_path / "t" / "train.jsonl", [{"task": "t", "actual_outcome": "a", "label": "x"}])
    found = import_failures("table", f"hf:{tmp_path / 't'}", columns={"root_cause": "label"})
    assert [(row["id"], row["root_cause"]) for row in found.rows] == [("default/train-1", "x")]


def test_a_data_set_that_cannot_be_loaded_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        DatasetError, match=r"cannot be loaded \(.*\); check the name and the network, or fetch"
    ) as raised:
        import_failures("trail", f"hf:{tmp_path / 'nothing'}")
    assert "\n" not in str(raised.value)
