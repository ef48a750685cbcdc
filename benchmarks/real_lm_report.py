"""What came of a job with a real language model, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def problems(result: Mapping[str, Any]) -> list[str]:
    """What did not hold; empty if the whole way did."""
    resume, phases, ended = result["resume"], result["phases"], result["time_outs"]
    late = phases["compile"]["too_late"]
    checks = {
        f"the free compile broke: {result['free']['said']}": result["free"]["exit_code"] not in (0, 2),
        f"{resume['repeated']} answers were asked for again after the kill": resume["repeated"] > 0,
        "the kill hit no call that was under way": late == 0,
        f"a finished run asked {resume['calls_when_finished']} more times": resume["calls_when_finished"] > 0,
        "a finished run ended with another program": not resume["same_artefact_when_finished"],
        "the program does not render as DSPy does": not result["renders_as_dspy"],
        f"{result['diagnose']['left']} failures were left without a diagnosis": result["diagnose"]["left"] > 0,
        f"{result['diagnose']['too_long']} failures were too long, not 1": result["diagnose"]["too_long"] != 1,
        "an outage was not said": ended["exit_code"] != 1 or "time-out" not in ended["said"],
    }
    return [problem for problem, wrong in checks.items() if wrong]


def render(result: Mapping[str, Any]) -> str:
    """The report as Markdown."""
    parts = [
        "# Once with a real language model",
        _about(result),
        "## Left to itself",
        _free(result["free"]),
        "## Held to the form of an answer",
        _held(result),
        "## Scores",
        verdict(result["benchmark"]),
        _scores(result["benchmark"]),
        "## Answers",
        _answers(result),
        "## Calls",
        "As the server counted them. Too late: the client was killed or had given up. Cut off: at the longest answer.",
        _calls(result["phases"]),
    ]
    return "\n\n".join(parts) + "\n"


def verdict(rows: Sequence[Row]) -> str:
    """Whether compiling helped, and whether it is of any use, by the intervals of the differences."""
    compiled, others = rows[0], {row["name"]: row for row in rows}
    plain, constant = others["uncompiled"], others["constant"]
    told = f"The compiled program has macro-F1 {_value(compiled)}, the uncompiled one {_value(plain)}"
    lift = "there is a lift" if _is_below(plain) else "there is no lift that these rows could show"
    use = "beats" if _is_below(constant) else "does not beat"
    return f"{told}: {lift}. It {use} always giving the same answer, {_value(constant)}."


def _is_below(row: Row) -> bool:
    """Whether it lies below the first row with its whole interval."""
    return row["vs_first"]["interval"][1] < 0


def _about(result: Mapping[str, Any]) -> str:
    rows = ", ".join(f"{count} {name}" for name, count in result["rows"].items())
    return (
        f"{result['model']} on llama.cpp, {result['context_tokens']} tokens of context, answers of at most"
        f" {result['answer_tokens']} tokens, on a few rows of `datasets/failures` ({rows}), in {result['minutes']}"
        f" minutes. Made by `make real-lm`."
    )


def _free(free: Mapping[str, Any]) -> str:
    return f"    {free['command']}\n\nended with exit code {free['exit_code']}: “{free['said']}”"


def _held(result: Mapping[str, Any]) -> str:
    kill, resume, phases = result["kill"], result["resume"], result["phases"]
    impatient = result["time_outs"]
    return "\n\n".join(
        (
            "From here on the server holds the model to the fields asked for, with a grammar. It chooses what stands in"
            " them.",
            f"    {result['command']}",
            f"was killed (SIGKILL) during its call {kill['at_call']} of at most {kill['of_at_most']}. `compile --resume`"
            f" made {phases['resume']['calls']} more calls; {resume['repeated']} answers that the client had taken were"
            f" asked for again, as the server saw it. Resumed once more when it was finished, it made"
            f" {resume['calls_when_finished']} calls. The program renders byte for byte as DSPy does.",
            f"`diagnose` with `REFLEX_TIMEOUT_S={impatient['timeout_s']}` ended with exit code {impatient['exit_code']}:"
            f" “{impatient['said']}”",
        )
    )


def _scores(rows: Sequence[Row]) -> str:
    head = ("name", "macro-F1", "accuracy", "refused", "unparsable", "of", "s a row", "macro-F1 minus first")
    return _table(head, (_score(row) for row in rows))


def _score(row: Row) -> tuple[str, ...]:
    versus = row["vs_first"]
    return (
        row["name"], _value(row), _with_interval(row["accuracy"], row["accuracy_interval"]), str(row["refusals"]),
        str(row["unparsable"]), str(row["n"]), f"{row['seconds_per_failure']:.2f}",
        _with_interval(versus["difference"], versus["interval"]) if versus else "",
    )  # fmt: skip


def _answers(result: Mapping[str, Any]) -> str:
    found = result["diagnose"]
    told = (
        f"`diagnose` named no cause for {found['without_cause']} of {found['failures']} failures, one of which is longer"
        f" than the model's context on purpose, and asks for a person for {found['for_review']}."
    )
    lines = [
        (how, why, str(count))
        for how, counts in result["answers"].items()
        for why, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
    return f"{told}\n\n{_table(('model', 'answer', 'how many'), lines)}"


def _calls(phases: Mapping[str, Mapping[str, Any]]) -> str:
    head = ("phase", "calls", "too late", "cut off", "input tokens", "output tokens", "median s", "longest s")
    names = ("calls", "too_late", "cut_off", "input_tokens", "output_tokens", "median_s", "longest_s")
    return _table(head, ((phase, *(str(told[name]) for name in names)) for phase, told in phases.items()))


def _value(row: Row) -> str:
    return _with_interval(row["macro_f1"], row["interval"])


def _with_interval(value: float, interval: Sequence[float]) -> str:
    return f"{value:.2f} [{interval[0]:.2f}, {interval[1]:.2f}]"


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *lines))
