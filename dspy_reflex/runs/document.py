"""What a report says of a run, section by section.

Labels, ids, numbers and the instruction are shown; of the failures' own text only what the instruction quotes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from dspy_reflex.benchmark import statistics
from dspy_reflex.benchmark.confidence import bins
from dspy_reflex.runs import answers, pictures
from dspy_reflex.runs.folder import Run, flat
from dspy_reflex.runs.pages.blocks import Block, Document, Picture, Row, Section, Table, Text
from dspy_reflex.runs.prompt import Demo, coverage, demos_of, instruction_diff
from dspy_reflex.runs.result import Candidate, Prediction, Score

VERSIONS = ("uncompiled", "compiled")
WORST_RULES = 20
"""How many of the worst rules are listed."""
SAME = "The instruction is the same."


def run_document(run: Run) -> Document:
    """All there is to say about a run; sections that nothing is known for are left out."""
    sections = [
        Section("In short", (_summary(run),)),
        Section("Warnings", tuple(_warnings(run))),
        Section("Candidates", tuple(_candidates(run.result.candidates))),
        Section("Learning curve", tuple(_learning_curve(run))),
        Section("Answers", tuple(_answers(run))),
        Section("Instruction, before and after", tuple(_instruction(run))),
        Section("Demos", tuple(_demos(run))),
        Section("Cost", tuple(_cost(run))),
        Section("Errors", tuple(_errors(run.predictions))),
        Section("Options", tuple(_options(run))),
    ]
    return Document(f"Compile of {run.result.program}", tuple(section for section in sections if section.blocks))


def score_text(score: Score | None) -> str:
    """Metric, value, interval, size, and what it was measured on."""
    if score is None:
        return ""
    low, high = score.interval
    return f"{score.metric} {score.value:.3f} [{low:.3f}, {high:.3f}], n={score.n}{score.on and f', {score.on}'}"


def _summary(run: Run) -> Table:
    result = run.result
    facts = {
        "program": result.program,
        "optimizer": result.optimizer,
        "model": run.model,
        "compiled": score_text(result.scores),
        "uncompiled": score_text(result.scores.uncompiled),
        "partial": result.partial or "",
        "calls": f"{result.calls:,}",
        "tokens": _number(result.ledger.tokens),
        "USD": _number(result.ledger.usd, ",.4f"),
        "seconds": _number(result.ledger.seconds, ",.1f"),
        "finished": result.finished or "",
    }
    return Table(("", ""), tuple((name, text) for name, text in facts.items() if text))


def _warnings(run: Run) -> Iterable[Block]:
    """In a table, because they may quote a file: a cell cannot become a heading."""
    if run.result.warnings:
        yield Table(("",), tuple((warning,) for warning in run.result.warnings))


def _candidates(candidates: tuple[Candidate, ...]) -> Iterable[Block]:
    if not any(each.score is not None for each in candidates):
        return
    yield Picture("candidates.png", "score of each candidate", partial(pictures.candidates_png, candidates))
    yield Picture("cost.png", "score against tokens", partial(pictures.cost_png, candidates))
    head = ("candidate", "score", "rows", "demos", "prompt tokens", "calls so far", "tokens so far", "")
    yield Table(head, tuple(map(_candidate, candidates)))


def _candidate(each: Candidate) -> Row:
    fate = "chosen" if each.best else "dropped early" if each.dropped else ""
    numbers = (each.rows, each.demos, each.prompt_tokens, each.calls, each.tokens)
    return (str(each.candidate), _number(each.score, ".4f"), *map(_number, numbers), fate)


def _learning_curve(run: Run) -> Iterable[Block]:
    points, metric = run.result.learning_curve, run.result.scores.metric
    if points:
        draw = partial(pictures.learning_curve_png, points, metric)
        yield Picture("learning_curve.png", f"{metric} over rows to learn from", draw)
        cells = ((str(each.rows), f"{each.value:.3f}", _interval(each.interval)) for each in points)
        yield Table(("rows", metric, "interval"), tuple(cells))


def _answers(run: Run) -> Iterable[Block]:
    """To val, or where there is none, to the rows that each fold of a cross-validation left out."""
    rows = answers.judged(run.predictions)
    if rows:
        labels = answers.labels_of(rows, run.program.labels if run.program else ())
        counts = answers.confusion(rows, labels)
        draw = partial(pictures.confusion_png, counts, labels, len(rows))
        yield Picture("confusion.png", "confusion of gold labels and answers", draw)
        yield _per_class(rows, labels)
    if line := answers.reliability_line(rows):
        yield Text(line)
        sure = answers.sure(rows)
        draw = partial(pictures.reliability_png, bins(*sure), len(sure[0]))
        yield Picture("reliability.png", "share right over confidence", draw)
    if run.result.calibration:
        yield Table(("calibration", ""), tuple(flat(run.result.calibration).items()))


def _per_class(rows: list[Prediction], labels: list[str]) -> Table:
    scores = statistics.per_class([str(one.gold) for one in rows], [one.told for one in rows], labels)
    cells = ((s.label, str(s.support), f"{s.precision:.2f}", f"{s.recall:.2f}", f"{s.f1:.2f}") for s in scores)
    return Table(("label", "n", "precision", "recall", "F1"), tuple(cells))


def _instruction(run: Run) -> Iterable[Block]:
    diff = instruction_diff(run.uncompiled, run.program, VERSIONS)
    if diff:
        yield diff if diff.lines else Text(SAME)


def _demos(run: Run) -> Iterable[Block]:
    if covered := coverage(run):
        yield Table(("label", "demos"), tuple((label, str(count)) for label, count in covered.items()))
    if demos := demos_of(run.program):
        yield demo_table(demos)


def demo_table(demos: Iterable[Demo]) -> Table:
    """Demos with the ids of their rows."""
    cells = ((demo.id or "?", demo.label or "", "a model" if demo.worked else "people") for demo in demos)
    return Table(("id", "label", "answered by"), tuple(cells))


def _cost(run: Run) -> Iterable[Block]:
    bill = run.result.ledger
    if bill.phases:
        head = ("phase", "calls", "input tokens", "output tokens", "refusals", "unusable", "replayed")
        cells = (
            (name, *(f"{count:,}" for count in phase.model_dump().values())) for name, phase in bill.phases.items()
        )
        yield Table(head, tuple(cells))
    if bill.models:
        used = bill.models.items()
        cells = (
            (name, *map(_number, (one.calls, one.input_tokens, one.output_tokens)), _number(one.usd, ",.4f"))
            for name, one in used
        )
        yield Table(("model", "calls", "input tokens", "output tokens", "USD"), tuple(cells))


def _errors(predictions: tuple[Prediction, ...]) -> Iterable[Block]:
    if rules := answers.scored(predictions):
        yield Text(f"The lowest scores of {len(rules)} rules:")
        worst = ((one.id, f"{one.score:.2f}", one.problem) for one in rules[:WORST_RULES])
        yield Table(("id", "score", "problem"), tuple(worst))
    if wrong := answers.mistakes(predictions):
        yield Text(f"Wrong answers: {len(wrong)}, the surest first.")
        cells = ((one.id, str(one.gold), str(one.told), _number(one.confidence, ".2f")) for one in wrong)
        yield Table(("id", "gold", "answer", "confidence"), tuple(cells))
    if silent := answers.unusable(predictions):
        yield Text(f"No usable answer, which is a miss: {len(silent)}.")
        yield Table(("id", "gold", "problem"), tuple((one.id, str(one.gold), one.problem) for one in silent))
    if answers.judged(predictions) and not (wrong or silent):
        yield Text("Every answer was right.")


def _options(run: Run) -> Iterable[Block]:
    if given := tuple((name, value) for name, value in run.options.items() if value):
        yield Table(("option", "value"), given)


def _number(value: float | None, form: str = ",") -> str:
    return "" if value is None else format(value, form)


def _interval(interval: tuple[float, float] | None) -> str:
    return f"[{interval[0]:.3f}, {interval[1]:.3f}]" if interval else ""
