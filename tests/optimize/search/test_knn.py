"""Programs that retrieve their examples: the same ones in DSPy and without it, and nobody asked for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dspy
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dspy_reflex.errors import CompileError, ProgramError, RenderError
from dspy_reflex.optimize.api import evaluate_program
from dspy_reflex.optimize.examples import examples_for
from dspy_reflex.optimize.modules import PROGRAMS
from dspy_reflex.optimize.publish import adapter, load_module, publish, same_rendering
from dspy_reflex.optimize.search.knn import NearestDemos, compile_knn, retrieved, worth
from dspy_reflex.runtime.artifact import Artifact, check, digest_of, dumps
from dspy_reflex.runtime.inputs import cause_inputs
from dspy_reflex.runtime.program import load_program
from dspy_reflex.runtime.render import render
from dspy_reflex.runtime.retrieve import said
from tests.optimize.compiles import labelled, quick
from tests.runtime.programs import HOUSE, PIECES, REPORTS, any_text, cause_answer

K = 3
NAMES = ("task", "expected_outcome", "actual_outcome", "context")


def example(text: str, label: str | None = None, **known: Any) -> Any:
    """A labelled report of a tenant."""
    values = cause_inputs({"task": "look after the house", "actual_outcome": text})
    answer = {"root_cause": label} if label else {}
    return dspy.Example(**values, **answer, dspy_id=text, dspy_row=text, **known).with_inputs(*values)


HOUSE_EXAMPLES = [example(text, label) for label, texts in REPORTS.items() for text in texts]
WORDS = sorted({word for texts in REPORTS.values() for text in texts for word in text.split()})


def retrieving(examples: Sequence[Any] = HOUSE_EXAMPLES, k: int = K) -> NearestDemos:
    """A program that retrieves from reports of tenants."""
    return compile_knn(PROGRAMS["root_cause"](HOUSE), examples, k)


MODULE = retrieving()
ARTIFACT = publish(MODULE, trainset=HOUSE_EXAMPLES)


ASKED = [
    example(text)
    for text in (
        "The tap drips and drips, then the fuse blows, blows, blows.",
        "The gutter is clogged by leaves, water runs down the wall.",
        "The breaker trips when the boiler is on; the radiator stays cold.",
        "No heating, a wet patch, and hair in the drain.",
    )
]
ROUNDED = 0.01
"""What whole numbers may change of a cosine."""


class Spy(dspy.LM):
    """A model that remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__("openai/spy", cache=False)
        self.asked: list[Any] = []

    def __call__(self, prompt: Any = None, *, messages: Any = None, **options: Any) -> Any:
        self.asked.append(messages)
        return [cause_answer()]

    async def acall(self, prompt: Any = None, *, messages: Any = None, **options: Any) -> Any:
        return self(prompt, messages=messages, **options)


def sent(module: Any, values: Mapping[str, str]) -> Any:
    """The messages that the installed DSPy really sends when the module is called."""
    spy = Spy()
    with dspy.context(lm=spy, adapter=adapter()):
        module(**values)
    assert len(spy.asked) == 1
    return spy.asked[0]


pieces = st.lists(st.sampled_from([*PIECES, *(f" {word} " for word in WORDS)]), max_size=14).map("".join)
failures = st.fixed_dictionaries(dict.fromkeys(NAMES, pieces | any_text))
FROM_FILE = check(json.loads(dumps(ARTIFACT)), "file")


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(failures)
def test_a_thousand_inputs_render_as_in_dspy(failure: dict[str, str]) -> None:
    """Hostile texts among them, many of them near to some example: same examples, same order, same bytes.

    The artefact went through its file, and the module weighed its examples by itself.
    """
    assert same_rendering(FROM_FILE, MODULE, cause_inputs(failure))


@settings(max_examples=50, deadline=None)
@given(failures)
def test_what_the_module_really_sends_is_what_is_sent_without_dspy(failure: dict[str, str]) -> None:
    values = cause_inputs(failure)
    assert render(FROM_FILE, values) == sent(MODULE, values)


def test_real_failures_get_the_same_examples_in_both_wings(small: Path) -> None:
    for program in PROGRAMS:
        trainset = examples_for(program, labelled(small, "train"), 0)
        module = compile_knn(PROGRAMS[program](), trainset, K)
        artifact = publish(module, trainset=trainset)
        loaded = load_module(artifact)
        for row in examples_for(program, labelled(small, "test"), 0):
            values = dict(row.inputs())
            assert same_rendering(artifact, module, values)
            assert same_rendering(artifact, loaded, values)
            assert len(render(artifact, values)) == 2 + 2 * K


def test_dspys_own_knn_finds_the_same_but_for_rounding() -> None:
    """`dspy.KNN` with our words as its `Embedder`: the cosine of vectors of length one, in floats."""
    texts = {_as_knn_has_it(one): dict(one.inputs()) for one in (*ASKED, *HOUSE_EXAMPLES)}
    weights = worth([said(dict(one.inputs())) for one in HOUSE_EXAMPLES], [one.root_cause for one in HOUSE_EXAMPLES])

    def embed(asked: list[str]) -> Any:
        counts = [said(texts[text]) for text in asked]
        rows = np.array([[count[word].bit_length() * weights[word] for word in weights] for count in counts])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    theirs = dspy.KNN(len(HOUSE_EXAMPLES), HOUSE_EXAMPLES, vectorizer=dspy.Embedder(embed, caching=False))
    for one in ASKED:
        cosines = theirs.trainset_vectors @ embed([_as_knn_has_it(one)])[0]
        ours = [cosines[at] for at in MODULE.index.nearest(dict(one.inputs()), len(HOUSE_EXAMPLES))]
        expected = [cosines[HOUSE_EXAMPLES.index(found)] for found in theirs(**one.inputs())]
        assert ours == pytest.approx(expected, abs=ROUNDED)


def _as_knn_has_it(one: Any) -> str:
    """What `dspy.KNN` gives its embedder."""
    return " | ".join(f"{name}: {one[name]}" for name in NAMES)


def test_like_reports_are_shown() -> None:
    asked = example("The lamp is off, the fuse blows again.")
    assert {one.root_cause for one in MODULE.demos_for(asked.inputs())} == {"short_circuit"}


def test_a_row_it_learnt_from_is_not_shown_with_its_own_answer() -> None:
    for one in HOUSE_EXAMPLES:
        values = dict(one.inputs())
        assert one not in MODULE.demos_for(values)
        assert all(values["actual_outcome"] not in message["content"] for message in render(ARTIFACT, values)[1:-1])


def test_a_word_that_tells_the_label_counts_more_than_one_that_is_as_rare() -> None:
    texts = ("drips once", "drips twice", "sparks once", "sparks twice", "a", "b", "c", "d")
    weights = worth([said({"text": text}) for text in texts], ["leak", "leak", "short", "short"] * 2)
    assert weights.keys() == {"drips", "once", "twice", "sparks"}
    assert weights["drips"] == pytest.approx(weights["sparks"])
    assert weights["drips"] > 2 * weights["once"] > 0


def test_labels_that_are_all_the_same_leave_rarity_to_count() -> None:
    module = retrieving([example(text, "leak") for text in REPORTS["leak"]], k=1)
    found = module.demos_for(example("a wet patch on the pipe").inputs())
    assert [one.actual_outcome for one in found] == ["There is a wet patch below the pipe."]


def test_compiling_asks_nobody_and_a_question_asks_once() -> None:
    spy = Spy()
    with dspy.context(lm=spy, adapter=adapter()):
        module = retrieving()
        publish(module)
        assert spy.asked == []
        values = example("a wet wall").inputs()
        module(**values)
        asyncio.run(module.acall(**values))
    assert len(spy.asked) == 2
    assert spy.asked[0] == spy.asked[1] == render(ARTIFACT, dict(values))


def test_instructions_that_were_learnt_stay_and_demos_go() -> None:
    student: Any = PROGRAMS["root_cause"](HOUSE)
    student.predict.signature = student.predict.signature.with_instructions("Look at the pipes.")
    student.predict.demos = HOUSE_EXAMPLES[:2]
    artifact = publish(compile_knn(student, HOUSE_EXAMPLES, K))
    assert (artifact.data["instructions"], artifact.data["demos"]) == ("Look at the pipes.", [])
    assert len(artifact.data["messages"]) == 1
    assert student.predict.demos


def test_every_example_names_its_row_and_what_was_shown_can_be_counted() -> None:
    known = ARTIFACT.data["retrieval"]["examples"]
    assert [one["id"] for one in known] == [one.dspy_id for one in HOUSE_EXAMPLES]
    shown = retrieved(ARTIFACT, [example("fuse blows").inputs(), example("tap drips").inputs()])
    assert [one["values"]["root_cause"] for one in shown] == ["short_circuit"] * K + ["leak"] * K
    assert retrieved(publish(PROGRAMS["root_cause"](HOUSE)), [example("fuse blows").inputs()]) == []


def test_the_same_examples_give_the_same_file_and_others_another() -> None:
    assert dumps(publish(retrieving(), trainset=HOUSE_EXAMPLES)) == dumps(ARTIFACT)
    assert publish(retrieving(k=2), trainset=HOUSE_EXAMPLES).version != ARTIFACT.version
    assert publish(retrieving(HOUSE_EXAMPLES[1:]), trainset=HOUSE_EXAMPLES).version != ARTIFACT.version


def test_an_index_that_was_not_made_of_the_examples_is_noticed() -> None:
    """`programs verify` weighs them anew."""
    values = dict(example("The tap drips.").inputs())
    data = json.loads(dumps(ARTIFACT))
    data["retrieval"]["index"]["drips"] = "23:9999"
    data["digest"] = digest_of(data)
    other = check(data, "file")
    assert same_rendering(ARTIFACT, load_module(ARTIFACT), values)
    assert not same_rendering(other, load_module(other), values)


def test_what_a_state_of_dspys_cannot_hold_is_said(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"retrieves its examples for each input.*load_module"):
        ARTIFACT.to_dspy()
    with pytest.raises(ProgramError, match="save the artefact"):
        MODULE.save(str(tmp_path / "state.json"))


def test_dspys_own_knn_few_shot_is_refused_and_not_exported_without_its_examples() -> None:
    embedder = dspy.Embedder(lambda texts: np.ones((len(texts), 2)), caching=False)
    module = dspy.KNNFewShot(K, HOUSE_EXAMPLES, vectorizer=embedder).compile(PROGRAMS["root_cause"](HOUSE))
    with pytest.raises(ProgramError, match="forward was replaced"):
        publish(module)


def test_demos_beside_retrieved_ones_are_refused() -> None:
    module = retrieving()
    module.predict.demos = HOUSE_EXAMPLES[:1]
    with pytest.raises(ProgramError, match="never shows other demos"):
        publish(module)


WHOLE = {"reasoning": "r", "evidence": "e", "second": "none", "confidence": 0.5}


@pytest.mark.parametrize("rest", [[], [example("wet", "leak", **WHOLE)]])
def test_examples_with_all_fields_render_as_dspy_renders_them(rest: list[Any]) -> None:
    examples = [example(text, "leak", **WHOLE, augmented=True) for text in REPORTS["leak"]] + rest
    module = retrieving(examples)
    values = dict(example("a wet tap").inputs())
    assert render(publish(module), values) == sent(module, values)


def test_examples_some_with_all_fields_and_some_without_are_refused() -> None:
    """DSPy would show those without first, whichever is nearer."""
    with pytest.raises(RenderError, match="give all of them, or none"):
        publish(retrieving([example("wet", "leak", **WHOLE), example("dry", "leak")]))


@pytest.mark.parametrize(
    ("examples", "error", "reason"),
    [
        ([], CompileError, "the trainset is empty"),
        ([dspy.Example(task=3, root_cause="leak")], CompileError, "is not text"),
        ([example("wet")], RenderError, "without an answer"),
    ],
)
def test_examples_that_cannot_be_used_are_refused(examples: list[Any], error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        publish(retrieving(examples))


def test_a_module_with_two_predictors_is_refused() -> None:
    class Two(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = dspy.Predict("x -> y"), dspy.Predict("x -> y")

    with pytest.raises(ProgramError, match="this module has 2"):
        compile_knn(Two(), HOUSE_EXAMPLES, K)


def test_a_bare_predictor_can_be_given_examples_too() -> None:
    module = compile_knn(PROGRAMS["root_cause"](HOUSE).predict, HOUSE_EXAMPLES, K)
    assert render(publish(module, HOUSE, program="root_cause"), (values := dict(example("wet").inputs()))) == sent(
        module, values
    )


@pytest.mark.parametrize("program", ["root_cause", "rule"])
def test_a_compile_from_rows_to_diagnoses(program: str, small: Path, tmp_path: Path) -> None:
    """Through the driver: no call but those that measure, and the artefact answers and is benchmarked as any other."""
    result = quick(tmp_path, small, program, optimizer="knn_few_shot")
    told = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert told["ledger"]["phases"].keys() == {"measure"}
    retrieval = result.artifact.data["retrieval"]
    assert sum(told["coverage"].values()) == retrieval["k"] * len(labelled(small, "val"))
    assert len(retrieval["examples"]) == len(labelled(small, "train"))
    report = evaluate_program(result.artifact, small)
    assert report.columns[0].seen == 0
    _answers(load_program(program, path=result.path), labelled(small, "test")[0])


def _answers(program: Any, row: Any) -> None:
    if program.artifact.program == "rule":
        assert program(row.failure, row.root_cause).rule
    else:
        diagnosis, again = program(row.failure), asyncio.run(program.acall(row.failure))
        assert diagnosis == again
        assert diagnosis.root_cause in program.artifact.labels


def test_the_published_module_is_the_one_that_was_compiled(small: Path) -> None:
    artifact: Artifact = publish(compile_knn(PROGRAMS["rule"](), examples_for("rule", labelled(small, "train"), 0), K))
    module = load_module(artifact)
    assert isinstance(module, NearestDemos)
    assert dumps(publish(module, trainset=[])) == dumps(publish(load_module(artifact), trainset=[]))
    assert module.index == artifact.retrieval.index if artifact.retrieval else False
