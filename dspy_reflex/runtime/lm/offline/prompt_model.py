"""The offline learner as a prompt model: it answers the questions that DSPy's instruction optimizers ask.

Shown labelled examples, it mines them for cues (and rules) and writes them down; asked for an instruction, it puts what
was written down under the basic instruction, a longer or shorter sheet for different seeds. Asked for rules that examples
teach, it does both at once. What feedback teaches is in `reflect`.
"""

from __future__ import annotations

import ast
import random
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from threading import Lock

from dspy_reflex.runtime.lm.offline.cues import SMALLEST_WEIGHTS, mine, read_sheets, without_sheets, write_sheet
from dspy_reflex.runtime.lm.offline.features import Features, features_of
from dspy_reflex.runtime.lm.offline.prompt import Fields
from dspy_reflex.runtime.lm.offline.rulebook import Entry, collect, read_book, without_books, write_book

MAX_EXAMPLES = 1_000
"""The most examples mined at once; the cost grows with their square."""
REPEATED = 2.0
"""An output whose values occur this often on average is a closed choice, not a text."""
BOOK_SHARES = (1.0, 0.85)
"""How much of a rule book goes into an instruction."""
LISTED, ANSWERED = "Input Fields:", "=========\nOutput Fields:"
"""What stands over each half of a listed example."""
FIELD = re.compile(r"^(\w+): ?", re.MULTILINE)
_MINING = Lock()

Example = tuple[Fields, Fields]
"""Inputs and right outputs."""


def observe(case: Fields) -> str:
    """Observations about the labelled examples in a `DatasetDescriptor` question."""
    return _observed(_examples(case.get("examples", ""))[:MAX_EXAMPLES]) or "COMPLETE"


def instruct(case: Fields, seed: int) -> str:
    """An instruction: the basic one, and what was observed, more or less of it by seed."""
    basic = without_books(without_sheets(case.get("basic_instruction", "")))
    return "\n\n".join([basic, *_taught(case.get("dataset_description", ""), seed)])


def infer(case: Fields, seed: int) -> str:
    """What the examples in a `CustomRulesInduction` question teach, more or less of it by seed; empty if nothing."""
    with _MINING:  # the same examples are shown with several seeds at once, and need be mined once
        seen = _observed_in(case.get("examples_text", ""))
    return "\n\n".join(_taught(seen, seed))


@lru_cache(maxsize=1)
def _observed_in(text: str) -> str:
    """Observations about listed examples."""
    return _observed(_listed(text)[:MAX_EXAMPLES])


def _observed(examples: Sequence[Example]) -> str:
    if not examples:
        return ""
    features = [features_of(inputs) for inputs, _ in examples]
    outputs = [answers for _, answers in examples]
    parts = [f"{len(examples)} labelled examples were read."]
    for name in _choices(outputs):
        parts += _sheets(features, [answers[name] for answers in outputs])
    if book := _book(examples, features):
        parts.append(write_book(book))
    return "\n".join(parts) + "\n"


def _taught(seen: str, seed: int) -> list[str]:
    rng = random.Random(seed)
    parts: list[str] = []
    if sheets := read_sheets(seen):
        parts.append(write_sheet(rng.choice(sheets)))
    if book := read_book(seen):
        share = rng.choice(BOOK_SHARES)
        kept = sorted(rng.sample(range(len(book)), max(1, round(share * len(book)))))
        parts.append(write_book([book[i] for i in kept]))
    return parts


def _sheets(features: Sequence[Features], labels: Sequence[str]) -> list[str]:
    classes = sorted(set(labels))
    if len(classes) < 2:
        return []
    return [write_sheet(mine(features, labels, classes, smallest)) for smallest in SMALLEST_WEIGHTS]


def _book(examples: Sequence[Example], features: Sequence[Features]) -> list[Entry]:
    if "rule" not in examples[0][1]:
        return []
    kind = _shared_input([inputs for inputs, _ in examples])
    place = next(iter(_choices([answers for _, answers in examples])), "")
    rows = [
        (inputs.get(kind, "any"), answers.get(place, ""), answers["rule"], seen)
        for (inputs, answers), seen in zip(examples, features, strict=True)
        if answers.get("rule")
    ]
    return collect(rows)


def _choices(outputs: Sequence[Fields]) -> list[str]:
    """Outputs that look like one of a closed list: few different values, none of them long."""
    return [name for name in outputs[0] if _is_closed([answers.get(name, "") for answers in outputs])]


def _shared_input(inputs: Sequence[Fields]) -> str:
    return next((name for name in inputs[0] if _is_closed([fields.get(name, "") for fields in inputs])), "")


def _is_closed(values: Sequence[str]) -> bool:
    counts = Counter(values)
    return len(values) >= REPEATED * len(counts) and all(value and len(value) <= 80 for value in counts)


def _examples(text: str) -> list[Example]:
    """Inputs and outputs out of the `repr` of a list of `dspy.Example`s; nothing is executed."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return []
    calls = tree.body.elts if isinstance(tree.body, ast.List) else []
    return [example for call in calls if (example := _example(call))]


def _listed(text: str) -> list[Example]:
    """Inputs and outputs out of `InferRules`'s list of examples."""
    halves = [block.partition(ANSWERED) for block in f"\n{text}".split(f"\n{LISTED}\n")[1:]]
    blocks = [(inputs.strip(), outputs.strip()) for inputs, found, outputs in halves if found]
    names = [_shared_names([block[half] for block in blocks]) for half in (0, 1)]
    return [(_fields(inputs, names[0]), _fields(outputs, names[1])) for inputs, outputs in blocks]


def _shared_names(texts: Sequence[str]) -> list[str]:
    """What begins a line with a colon in every one of some texts: a text may have such lines of its own."""
    found = [dict.fromkeys(FIELD.findall(text)) for text in texts]
    return [name for name in (found[0] if found else ()) if all(name in names for names in found)]


def _fields(text: str, names: Sequence[str]) -> dict[str, str]:
    starts: dict[str, re.Match[str]] = {}
    for match in FIELD.finditer(text):
        if match[1] in names:
            starts.setdefault(match[1], match)
    ends = [*(match.start() for match in starts.values()), len(text)][1:]
    return {name: text[match.end() : end].strip() for (name, match), end in zip(starts.items(), ends, strict=True)}


def _example(call: ast.expr) -> Example | None:
    match call:
        case ast.Call(func=ast.Call(args=[ast.Dict() as body]), keywords=[ast.keyword(value=ast.Set() as keys)]):
            texts = {name: text for name, text in map(_text_pair, body.keys, body.values) if name}
        case _:
            return None
    named = {_text(key) for key in keys.elts}
    inputs = {name: value for name, value in texts.items() if name in named}
    return inputs, {name: value for name, value in texts.items() if name not in named}


def _text_pair(key: ast.expr | None, value: ast.expr) -> tuple[str, str]:
    """A field and its text; two empty texts for anything else, which is left out."""
    return (_text(key), _text(value)) if isinstance(value, ast.Constant) and isinstance(value.value, str) else ("", "")


def _text(value: ast.expr | None) -> str:
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
