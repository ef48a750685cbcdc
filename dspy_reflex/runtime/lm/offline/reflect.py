"""The offline learner as a prompt model that is told how answers did: it answers GEPA's and SIMBA's questions.

GEPA shows it an instruction and some answers with feedback, SIMBA one case with a better and a worse answer. It learns
from the right answers, which stand in both, and adds what they teach to what the instruction teaches already.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from dspy_reflex.runtime.lm.offline.cues import SMALLEST_WEIGHTS, mine, write_sheet
from dspy_reflex.runtime.lm.offline.features import Features, features_of
from dspy_reflex.runtime.lm.offline.prompt import Fields
from dspy_reflex.runtime.lm.offline.prompt_model import Example
from dspy_reflex.runtime.lm.offline.rulebook import collect, read_book, write_book

LABELLED = re.compile(r"^(\w+), as labelled: (.+)$", re.MULTILINE)
"""How feedback says what the right answer is."""
RULE = "rule"


def reflect(case: Fields) -> str:
    """The instruction in a `ProposeInstruction` question, and under it what the examples with feedback teach."""
    current = case.get("current_instruction", "")
    shown = cast("list[Any]", _parsed(case.get("examples_with_feedback", ""), list))
    examples = [example for one in shown if (example := _example(one))]
    return "\n\n".join([current, *_lessons(examples, current)])


def advise(case: Fields) -> str:
    """Advice as JSON for each module in an `OfferFeedback` question: the right rule, as a book of one.

    One case teaches no cues: what marks it out shows only beside others.
    """
    inputs, outputs = (_texts(_parsed(case.get(name, ""), dict)) for name in ("program_inputs", "oracle_metadata"))
    guide = case.get("modules_defn", "")
    book = _book([(inputs, outputs)], [features_of(inputs)], guide) if RULE in outputs else ""
    modules = cast("list[Any]", _parsed(case.get("module_names", ""), list))
    return json.dumps({str(name): book for name in modules if book}, ensure_ascii=False)


def _lessons(examples: Sequence[Example], guide: str) -> list[str]:
    features = [features_of(inputs) for inputs, _ in examples]
    if any(RULE in outputs for _, outputs in examples):
        return [book] if (book := _book(examples, features, guide)) else []
    return [_sheet(examples, features, field) for field in _closed(examples)]


def _sheet(examples: Sequence[Example], features: Sequence[Features], field: str) -> str:
    labels = [outputs[field] for _, outputs in examples]
    return write_sheet(mine(features, labels, sorted(set(labels)), SMALLEST_WEIGHTS[0]))


def _closed(examples: Sequence[Example]) -> list[str]:
    """Outputs that all examples have, with at least two answers to tell apart."""
    names = [name for name in (examples[0][1] if examples else ()) if all(name in outputs for _, outputs in examples)]
    return [name for name in names if len({outputs[name] for _, outputs in examples}) > 1]


def _book(examples: Sequence[Example], features: Sequence[Features], guide: str) -> str:
    """The rules that are not in the guide yet, each under the input that the guide defines; empty if there are none."""
    defined = {line.strip().removeprefix("- ").partition(": ")[0] for line in guide.splitlines()}
    known = {entry.rule for entry in read_book(guide)}
    rows = [
        (key, next((text for name, text in outputs.items() if name != RULE), ""), outputs[RULE], seen)
        for (inputs, outputs), seen in zip(examples, features, strict=True)
        if RULE in outputs and (key := next((text for text in inputs.values() if text in defined), ""))
    ]
    new = [entry for entry in collect(rows) if entry.rule not in known]
    return write_book(new) if new else ""


def _example(shown: Any) -> Example | None:
    """Inputs and right outputs of one answer with feedback; None where either is missing."""
    parts = cast("dict[str, Any]", shown) if isinstance(shown, dict) else {}
    inputs, labelled = parts.get("Inputs"), dict(LABELLED.findall(str(parts.get("Feedback", ""))))
    return (_texts(inputs), labelled) if isinstance(inputs, dict) and labelled else None


def _texts(fields: Any) -> dict[str, str]:
    return {name: text for name, text in fields.items() if isinstance(text, str)}


def _parsed(text: str, kind: type[Any]) -> Any:
    """A JSON value of a kind; an empty one for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return kind()
    return value if isinstance(value, kind) else kind()
