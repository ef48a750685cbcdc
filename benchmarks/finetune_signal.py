"""Do exported rows carry what they should teach? A small model that learns from them alone, on failures it has not seen.

    python -m benchmarks.finetune_signal       writes experiments/finetune-signal

The train split of `datasets/failures` is logged into a store, a person's root cause is put to each failure, and
`export --task classify` writes the rows. TF-IDF with logistic regression reads nothing but those rows: the question as
text, the label out of the answer. It is scored on the test split, beside the constant answer and the uncompiled program
on the offline model, a deterministic in-context learner. Nothing is chosen by the test split.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dspy_reflex.benchmark.baselines.learners import tfidf_logistic_regression
from dspy_reflex.benchmark.predict import Contender, cause_answers
from dspy_reflex.benchmark.statistics import difference_interval, interval, macro_f1
from dspy_reflex.clock import now
from dspy_reflex.evalset.labelled import LabelledFailure
from dspy_reflex.evalset.load import load_evalset
from dspy_reflex.files import write_atomic
from dspy_reflex.finetune.formats.registry import format_of
from dspy_reflex.finetune.plan import Plan
from dspy_reflex.finetune.rows.answers import question
from dspy_reflex.optimize.modules import RootCauseClassifier
from dspy_reflex.optimize.publish import publish
from dspy_reflex.runtime import library
from dspy_reflex.runtime.artifact import ANY_MODEL
from dspy_reflex.runtime.inputs import cause_inputs
from dspy_reflex.runtime.lm.connect import connect
from dspy_reflex.runtime.parse import sections
from dspy_reflex.stages.diagnosing.label import label
from dspy_reflex.stages.export import export, guard_for
from dspy_reflex.stages.reviewing.review import Act
from dspy_reflex.store import outcomes
from dspy_reflex.store.schema import micros
from dspy_reflex.store.store import Store
from dspy_reflex.taxonomies.load import load_taxonomy

TAXONOMY = load_taxonomy()
DATA = Path("datasets/failures")
OUT = Path("experiments/finetune-signal")


@dataclass(frozen=True)
class Exported:
    """A row as a trainer reads it."""

    question: str
    label: str


def main() -> None:
    """Export, learn, score, write."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--out", type=Path, default=OUT)
    options = made.parse_args()
    rows = load_evalset(DATA, TAXONOMY)
    with tempfile.TemporaryDirectory() as folder:
        learned = exported(rows.split("train"), Path(folder))
    result = scored(learned, rows.split("test"))
    write_atomic(options.out / "result.json", (json.dumps(result, indent=1) + "\n").encode())
    write_atomic(options.out / "report.md", report(result).encode())
    sys.stdout.write(report(result))


def exported(train: Sequence[LabelledFailure], folder: Path) -> list[Exported]:
    """The train split through a store and out again."""
    with Store(f"sqlite:///{folder / 'store.db'}") as store:
        with store.write() as connection:
            outcomes.take_in(connection, [_event(row, place) for place, row in enumerate(train)])
        act = Act("the data set", "labelled in datasets/failures")
        for place, row in enumerate(train):
            label(store, f"evt_{place:06}", str(row.root_cause), act, TAXONOMY.labels)
        plan = Plan(tasks=("classify",), split=0)
        export(store, plan, guard_for([]), format_of("trl"), folder / "out", licence="mit")
    lines = (folder / "out" / "data" / "sft" / "train.jsonl").read_text().splitlines()
    return [_learned(json.loads(line)) for line in lines]


def scored(learned: Sequence[Exported], test: Sequence[LabelledFailure]) -> dict[str, Any]:
    """Macro-F1 of each on the test split."""
    gold, units = [str(row.root_cause) for row in test], [row.unit for row in test]
    guide = library.find("root_cause", ANY_MODEL)
    asked = [question(guide, cause_inputs(row.failure.model_dump()))[-1].content for row in test]
    classify = tfidf_logistic_regression([row.question for row in learned], [row.label for row in learned])
    plain = publish(RootCauseClassifier(TAXONOMY), model=connect("offline").name)
    uncompiled = cause_answers(Contender("uncompiled", "uncompiled", plain, connect("offline")), test, 1, lambda: None)
    most = Counter(row.label for row in learned).most_common(1)[0][0]
    answers: Mapping[str, list[str | None]] = {
        "TF-IDF + logistic regression on the exported rows": [classify(one)[0] for one in asked],
        "uncompiled program, offline": [one.label for one in uncompiled],
        "constant": [most] * len(gold),
    }
    table = [
        {"name": name, "macro_f1": macro_f1(gold, told), "interval": interval(gold, told, units)}
        for name, told in answers.items()
    ]
    first = answers["TF-IDF + logistic regression on the exported rows"]
    leads = {name: difference_interval(gold, first, told, units) for name, told in list(answers.items())[1:]}
    return {"benchmark": "finetune_signal", "rows": len(learned), "n": len(gold), "scores": table, "leads": leads}


def report(result: Mapping[str, Any]) -> str:
    """For people."""
    lines = [
        f"| {one['name']} | {one['macro_f1']:.2f} [{one['interval'][0]:.2f}, {one['interval'][1]:.2f}] |"
        for one in result["scores"]
    ]
    leads = [f"Its lead over {name}: {low:+.2f} to {high:+.2f}." for name, (low, high) in result["leads"].items()]
    head = f"| learned from {result['rows']} exported rows | macro-F1 on test, n={result['n']} |\n| --- | --- |"
    about = " ".join((__doc__ or "").strip().split("\n\n", maxsplit=2)[2].split())
    return "\n\n".join(["# What exported rows teach", about, "\n".join([head, *lines]), " ".join(leads)]) + "\n"


def _event(row: LabelledFailure, place: int) -> dict[str, Any]:
    told = row.failure.model_dump(include={"task", "expected_outcome", "actual_outcome", "severity", "context"})
    return {"id": f"evt_{place:06}", "at": micros(now()), "agent_id": "agent", "ok": False, **told}


def _learned(row: Mapping[str, Any]) -> Exported:
    answer = sections(row["completion"][-1]["content"])
    return Exported(row["prompt"][-1]["content"], answer["root_cause"])


if __name__ == "__main__":
    main()
