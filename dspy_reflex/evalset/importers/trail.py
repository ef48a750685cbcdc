"""TRAIL (Deshpande et al. 2025): OpenTelemetry traces in which people marked spans with error categories.

A row is one marked span. What it shows is that span, because its category is about that span; the harness' logs in a
trace hold the reference solution and are not shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from pydantic import BaseModel

from dspy_reflex.evalset.importers.excerpt import EXCERPT_CHARS, share
from dspy_reflex.evalset.importers.imported import Gathering, canonical, make_row
from dspy_reflex.evalset.importers.reading import Record, Text, parse
from dspy_reflex.taxonomies.load import load_taxonomy
from dspy_reflex.untrusted import as_text, clip

KIND = "TRAIL"
MESSAGES_SHOWN = 3
"""How many of a model call's last input messages an excerpt shows."""
TASK_HEADING = "Here is the task:\n"
"""Ends the harness' preamble in the runs on GAIA."""
INPUT_MESSAGE = re.compile(r"llm\.input_messages\.(\d+)\.message\.content")


class _Span(BaseModel):
    span_id: str
    span_name: str = ""
    status_code: str = ""
    status_message: Text = ""
    span_attributes: dict[str, Any] = {}
    logs: list[Any] = []
    child_spans: tuple[_Span, ...] = ()

    def walk(self) -> Iterator[_Span]:
        """This span and all below it, in order."""
        yield self
        for child in self.child_spans:
            yield from child.walk()

    def attribute(self, name: str) -> str:
        return as_text(self.span_attributes.get(name)).strip()


class _Trace(BaseModel):
    trace_id: str
    spans: tuple[_Span, ...]

    def walk(self) -> list[_Span]:
        return [span for root in self.spans for span in root.walk()]


class _Error(BaseModel):
    category: str
    location: str
    evidence: Text = ""
    description: Text = ""


class _Annotations(BaseModel):
    trace_id: str | None = None
    errors: tuple[_Error, ...]


def import_trail(records: Sequence[Record], into: Gathering) -> None:
    """One row a marked span, of a folder with traces and annotations or of the hub's data set.

    The first category of a span is its root cause, further ones are also acceptable.
    """
    unpacked = [part for record in records for part in _unpacked(record, into)]
    traces: dict[str, _Trace] = {}
    annotations: list[tuple[Record, _Annotations]] = []
    for record in unpacked:
        if "spans" in record.data:
            if trace := parse(record, _Trace, KIND, into.problems):
                traces[trace.trace_id] = trace
        elif marks := parse(record, _Annotations, KIND, into.problems):
            annotations.append((record, marks))
    for record, marks in annotations:
        # Some annotation files leave the id to their name.
        trace = traces.pop(marks.trace_id or record.name, None)
        if trace is None:
            name = marks.trace_id or record.name
            into.problems.add(record.where, f"there is no trace {name!r}; put traces and annotations into one folder")
        else:
            _add_spans(record.where, trace, marks.errors, into)
    for _ in traces:
        into.skip("trace without annotations")


def _unpacked(record: Record, into: Gathering) -> list[Record]:
    """The hub's data set has a trace and its annotations in one row, as JSON texts."""
    if not {"trace", "labels"} <= record.data.keys():
        return [record]
    try:
        trace, marks = (_object(record.data[field]) for field in ("trace", "labels"))
    except ValueError as error:
        into.problems.add(record.where, f"trace or labels is no JSON object ({error}); fetch the data set again")
        return []
    name = str(trace.get("trace_id", ""))
    return [Record(record.where, trace, name), Record(record.where, {"trace_id": name, **marks}, name)]


def _object(value: object) -> dict[str, Any]:
    loaded: object = json.loads(value) if isinstance(value, str) else value
    if not isinstance(loaded, dict):
        raise ValueError(f"a {type(loaded).__name__}")
    return cast(dict[str, Any], loaded)


def _add_spans(where: str, trace: _Trace, errors: Sequence[_Error], into: Gathering) -> None:
    known = load_taxonomy("trail").labels
    by_id = {span.span_id: span for span in trace.walk()}
    marked: dict[str, list[tuple[str, _Error]]] = {}
    for error in errors:
        label = canonical(error.category, known)
        if label is None:
            into.skip(f"category outside the taxonomy: {error.category}")
        elif error.location not in by_id:
            into.skip("marked span is not in the trace")
        else:
            marked.setdefault(error.location, []).append((label, error))
    if not errors:
        into.skip("no span is marked")
    for location, found in marked.items():
        _add(where, trace, by_id[location], found, into)


def _add(where: str, trace: _Trace, span: _Span, found: Sequence[tuple[str, _Error]], into: Gathering) -> None:
    spans = trace.walk()
    row = make_row(
        f"trail-{trace.trace_id[:12]}-{span.span_id[:10]}",
        source=_source(spans),
        agent=span.span_name,
        task=_task(spans),
        expected=next((text for each in spans if (text := _value(each.logs, "true_answer"))), ""),
        actual=_answer(spans),
        trace=_span_text(span),
        labels=[label for label, _ in found],
        native=[error.category for _, error in found],
    )
    into.add(where, row, "\n".join(f"{error.description}\n{error.evidence}" for _, error in found))


def _source(spans: Sequence[_Span]) -> str:
    project = " ".join(span.attribute("pat.project.name") for span in spans[:1]).lower()
    if "gaia" in project:
        return "trail/gaia"
    return "trail/swe_bench" if "swe" in project else "trail"


def _agents(spans: Sequence[_Span]) -> list[_Span]:
    """The spans of whole agents, the outermost first; all spans where none is called one."""
    return [span for span in spans if span.attribute("openinference.span.kind") == "AGENT"] or list(spans)


def _task(spans: Sequence[_Span]) -> str:
    """What the outermost agent was given, without the harness' preamble."""
    given = next((text for span in _agents(spans) if (text := span.attribute("input.value"))), "")
    try:
        task = _object(given).get("task")
    except ValueError:
        task = None
    text = task if isinstance(task, str) else given
    return text.partition(TASK_HEADING)[2] or text


def _answer(spans: Sequence[_Span]) -> str:
    """What the outermost agent put out in the end."""
    return next((text for span in _agents(spans) if (text := span.attribute("output.value"))), "")


def _span_text(span: _Span) -> str:
    numbers = sorted(int(found[1]) for name in span.span_attributes if (found := INPUT_MESSAGE.fullmatch(name)))
    messages = [f"llm.input_messages.{number}.message" for number in numbers[-MESSAGES_SHOWN:]]
    given = [f"{span.attribute(f'{name}.role')}: {span.attribute(f'{name}.content')}" for name in messages]
    put_out = span.attribute("llm.output_messages.0.message.content") or span.attribute("output.value")
    *inputs, output = share([*(given or [span.attribute("input.value")]), put_out], EXCERPT_CHARS - 300)
    head = f"[span {span.span_name} status={span.status_code or 'Unset'}] {clip(span.status_message, 200)}".rstrip()
    return "\n".join([head, "INPUT (last messages):", *inputs, "OUTPUT:", output])


def _value(nested: object, key: str) -> str:
    """The first value of that key, however deep."""
    if isinstance(nested, dict):
        entries = cast(dict[str, object], nested)
        if key in entries:
            return as_text(entries[key])
        nested = list(entries.values())
    if isinstance(nested, list):
        return next((text for item in cast(list[object], nested) if (text := _value(item, key))), "")
    return ""
