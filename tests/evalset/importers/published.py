"""Data sets as their makers publish them: the real ones beside the repository, and small ones of the same form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(__file__).parents[4] / "shared" / "data"
RAW = SHARED / "raw"
NATIVE_COLUMNS = {
    "expected_outcome": "expected",
    "actual_outcome": "actual",
    "context": "trace_excerpt",
    "root_cause": "label_native",
    "explanation": "reason",
}
NATIVE = {"whowhen": "whowhen", "trail": "trail", "masft": "masft", "lakmus": "lakmus", "tau_qwen": "tau"}
"""Flattened data sets, and the mapping of each."""


def shared(*parts: str) -> Path:
    """A file or folder that is not published with this repository; the test is skipped where it is not there."""
    place = SHARED.joinpath(*parts)
    if not place.exists():
        pytest.skip(f"{place.name} is not published with this repository; it is looked for in ../shared/data")
    return place


def objects(path: Path) -> list[dict[str, Any]]:
    """A JSON Lines file, read without the package."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def write(path: Path, value: Any) -> Path:
    """A JSON document; of a list in a `.jsonl` one object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(item) + "\n" for item in value] if path.suffix == ".jsonl" else [json.dumps(value, indent=1)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def whowhen_run(number: int = 1, steps: int = 4, **fields: Any) -> dict[str, Any]:
    """A run of a generated team."""
    history = [{"content": f"turn {at} of run {number}", "role": "user", "name": f"Expert_{at}"} for at in range(steps)]
    run = {"question": f"How many of {number}?", "question_ID": f"q{number}", "ground_truth": 8, "history": history}
    marks = {"mistake_agent": "Expert_1", "mistake_step": "1", "mistake_reason": f"because of {number}"}
    return run | marks | {"level": "2", "is_correct": False, "system_prompt": {}} | fields


def trail_span(name: str, **fields: Any) -> dict[str, Any]:
    """A span without children."""
    empty: dict[str, Any] = {"span_attributes": {}, "logs": [], "events": [], "child_spans": []}
    return {"span_id": f"id-{name}", "span_name": name, "status_code": "Ok", "status_message": ""} | empty | fields


def trail_trace(trace_id: str = "t1") -> dict[str, Any]:
    """A trace of three levels, with the reference solution in the harness' log."""
    call = trail_span(
        "call",
        span_attributes={
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": "make a plan",
            "llm.output_messages.0.message.content": "1. guess",
        },
    )
    agent = trail_span(
        "agent",
        span_attributes={
            "openinference.span.kind": "AGENT",
            "input.value": json.dumps({"task": "Be careful. Here is the task:\nHow tall is it?"}),
            "output.value": "7 m",
        },
        child_spans=[call],
    )
    log = {"body": {"function.output": [{"true_answer": "8 m", "Annotator Metadata": {"Steps": "look it up first"}}]}}
    root = trail_span(
        "main", logs=[log], child_spans=[agent], span_attributes={"pat.project.name": "gaia-annotation-samples"}
    )
    return {"trace_id": trace_id, "spans": [root]}


def trail_error(category: str, location: str = "id-call", **fields: Any) -> dict[str, Any]:
    """One mark."""
    return {
        "category": category,
        "location": location,
        "evidence": "1. guess",
        "description": "it guessed although a tool was there",
        "impact": "HIGH",
    } | fields


def mast_run(number: int = 1, modes: tuple[str, ...] = ("1.3", "3.1"), **fields: Any) -> dict[str, Any]:
    """A run of the full data set."""
    codes = ["1.1", "1.2", "1.3", "1.4", "1.5", "2.1", "2.2", "2.3", "2.4", "2.5", "2.6", "3.1", "3.2", "3.3"]
    log = f"[INFO] start\n**task_prompt**: write game {number}\nCoder: done\nReviewer: fine\n"
    return {
        "mas_name": "ChatDev",
        "llm_name": "GPT-4o",
        "benchmark_name": "ProgramDev",
        "trace_id": number,
        "trace": {"key": f"k{number}", "index": number, "trajectory": log},
        "mast_annotation": {code: int(code in modes) for code in codes},
    } | fields


def agentrx_annotation(name: Any = "12", category: str = "Instruction Adherence Failure") -> dict[str, Any]:
    """An annotated run; the second of its failures is the root cause."""
    failures = [
        {
            "failure_id": number,
            "step_number": number,
            "step_reason": f"reason of step {number}",
            "failure_category": kind,
            "category_reason": f"why it is category {number}",
            "failed_agent": "Assistant",
        }
        for number, kind in ((1, "System Failure"), (2, category))
    ]
    root = {"failure_id": 2, "reason_for_root_cause": "nothing was confirmed"}
    return {"trajectory_id": name, "failure_summary": "it went wrong", "failures": failures, "root_cause": root}


def agentrx_run(name: str = "tau_retail_12") -> dict[str, Any]:
    """A run of three steps."""
    steps = [
        {"index": number, "substeps": [{"sub_index": 1, "role": "assistant", "content": f"says {number}"}]}
        for number in (1, 2, 3)
    ]
    return {"trajectory_id": name, "instruction": "Cancel the order.", "steps": steps}


def aeb_label(name: str = "GPT-4o_001_a", module: str = "plan", error: str = "inefficient_plan") -> dict[str, Any]:
    """A label of AgentErrorBench."""
    return {
        "trajectory_id": name,
        "LLM": "GPT-4o",
        "task_type": "alfworld",
        "critical_failure_step": 2,
        "critical_failure_module": module,
        "step_annotations": [{"step": 2, module: {"failure_type": error, "reasoning": "it walked in circles"}}],
    }


def aeb_run() -> dict[str, Any]:
    """A run of two steps."""
    texts = [
        "You are an agent. Your task is to: put a mug away.\nYou see a shelf.",
        "go to shelf",
        "nothing",
        "go home",
    ]
    roles = ["user", "assistant", "user", "assistant"]
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    return {"messages": messages, "metadata": {"won": False}}
