"""Tables and sentences of the README and the docs, made of committed results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

CAUSES = {
    "uncompiled": "the same program, uncompiled",
    "tfidf_logistic_regression": "TF-IDF + logistic regression, same training rows",
    "keyword_rules": "keyword rules",
    "constant": "always the same answer",
}
RULES = {
    "uncompiled": "the same program, uncompiled",
    "fixed_rule_per_cause": "one fixed rule per cause",
    "nearest_training_rule": "rule of the nearest training failure",
}


def failures_table(
    test: dict[str, Any], hard: dict[str, Any], rules: dict[str, Any], hard_rules: dict[str, Any]
) -> str:
    """Scores on our own test splits, programs first; the lead is on test."""
    others = [(CAUSES[row["name"]], row) for row in _in_order(test["rows"][2:], CAUSES)]
    other_rules = [(RULES[row["name"]], row) for row in _in_order(rules["rows"][1:], RULES)]
    lines = [("**root cause** (macro-F1), compiled with MIPROv2", test["rows"][0])]
    lines += [("labelled few-shot, as many demos", test["rows"][1]), *others]
    rule_lines = [("**rule** (rule score), compiled with MIPROv2", rules["rows"][0]), *other_rules]
    return _table(
        ("", f"test, n={test['n']}", "compiled is better by", f"test_hard, n={hard['n']}"),
        [
            *(_scored(*line, hard, "macro_f1") for line in lines),
            *(_scored(*line, hard_rules, "score") for line in rule_lines),
        ],
    )


def review_sentence(splits: dict[str, dict[str, Any]]) -> str:
    """Share of failures that the compiled program asks a person about, by split."""
    shares = [f"{found['rows'][0]['needs_review']:.0%} of `{name}` (n={found['n']})" for name, found in splits.items()]
    return f"It asks for a person on {', '.join(shares[:-1])} and {shares[-1]}"


def chain_sentence(splits: dict[str, dict[str, Any]]) -> str:
    """What rules score that are written for the causes a program names, beside the fixed rule of that cause."""
    told = [_chained(name, found) for name, found in splits.items()]
    return f"the rule score is {' and '.join(told)}"


def _chained(split: str, found: dict[str, Any]) -> str:
    right = found["dataset"].rpartition("(")[2].removesuffix(" right)")
    compiled, fixed = _in_order(found["rows"], [found["rows"][0]["name"], "fixed_rule_per_cause"])
    return f"{_score(compiled, 'score')} on `{split}` ({right} causes right), {_lead(fixed)} over the fixed rule"


def optimizers_table(lines: list[dict[str, Any]], sizes: dict[str, int]) -> str:
    """What each optimizer's program scores on unseen failures, and what it cost."""
    head = ("", *(f"{name}, n={n}" for name, n in sizes.items()), "val, chosen on it", "calls", "tokens", "seconds")
    return _table(head, [_optimizer(line, list(sizes)) for line in lines])


def _optimizer(line: dict[str, Any], splits: list[str]) -> tuple[str, ...]:
    if line["optimizer"] == "uncompiled":
        return CAUSES["uncompiled"], *_on_splits(line, splits), "", "", "", ""
    served = "" if line["model"] == "offline" else ", behind a server"
    title, cost = f"`{line['optimizer']}`{served}", (f"{line['calls']:,}", f"{line['tokens'] / 1e6:.1f} M")
    if not line["scores"]:
        return title, *("changed nothing" for _ in splits), "", "", "", ""
    return title, *_on_splits(line, splits), f"{line['val']:.2f}", *cost, f"{line['seconds']:.0f}"


def _on_splits(line: dict[str, Any], splits: list[str]) -> list[str]:
    return [f"{score:.2f} [{low:.2f}, {high:.2f}]" for score, (low, high) in (line["scores"][one] for one in splits)]


def rules_sentence(optimizers: dict[str, Any]) -> str:
    """What rules cost beside the default search."""
    rules, search = (_line(optimizers["lines"], name) for name in ("infer_rules", "miprov2"))
    calls, tokens = (rules[unit] / search[unit] for unit in ("calls", "tokens"))
    return f"`infer_rules` is level with `miprov2` on both splits for {_percent(calls)} of its calls and {_percent(tokens)} of its tokens"


def served_sentence(optimizers: dict[str, Any]) -> str:
    """The programs that were compiled a second time, through HTTP."""
    served = [line for line in optimizers["lines"] if line["model"] != "offline"]
    told = [f"{line['calls_counted_by_server']:,} calls for `{line['optimizer']}`" for line in served]
    return f"the server counted {' and '.join(told)}"


def cost_sentence(cost: dict[str, Any]) -> str:
    """What it takes to be as good as stock DSPy."""
    ratio, whole = cost["ratio"], cost["whole_ratio"]
    return (
        f"To reach the val score that stock MIPROv2 ends with, our compile takes {_percent(ratio['calls'])} of its calls "
        f"and {_percent(ratio['tokens'])} of its tokens (medians of {len(cost['seeds'])} seeds; with {cost['never_reached']} of them "
        f"it never got there). Run to their end, both cost about the same: {_percent(whole['calls'])} of the "
        f"calls, {_percent(whole['tokens'])} of the tokens."
    )


def cost_on_test_sentence(cost: dict[str, Any]) -> str:
    """Whether quality was paid with."""
    test, (low, high) = cost["test"], cost["test"]["ours_minus_stock"]
    return f"On test there is no difference: {test['ours']:.2f} and {test['stock']:.2f} [{low:+.2f}, {high:+.2f}]"


def resume_sentence(overhead: dict[str, Any]) -> str:
    """What a kill costs at most."""
    most = max(max(one["overhead"]) for one in overhead["threads"])
    threads = " or ".join(str(one["threads"]) for one in overhead["threads"])
    return f"Killed half-way with {threads} threads, it makes {100 * most:.1f} % more calls at most"


def kills_sentence(kills: dict[str, Any]) -> str:
    """What kills at random moments came to."""
    return (
        f"{kills['held']} of {kills['kills']} compiles that were killed at a random moment ended with the bytes of an "
        f"undisturbed one; {kills['repeated']} answers that had been kept were asked for again"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def real_model_sentence(real: dict[str, Any]) -> str:
    """What a real language model came to, and whether the way held."""
    rows = {row["name"]: row for row in real["benchmark"]}
    compiled = real["benchmark"][0]
    return (
        f"macro-F1 {_score(compiled, 'macro_f1')} compiled, {_score(rows['uncompiled'], 'macro_f1')} uncompiled, "
        f"{_score(rows['constant'], 'macro_f1')} for always the same answer, n={compiled['n']}. Killed at call "
        f"{real['kill']['at_call']}, the compile went on with {real['phases']['resume']['calls']} calls, "
        f"{real['resume']['repeated']} of them for an answer that it had"
    )


def _line(lines: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(line for line in lines if line["optimizer"] == name)


def _scored(title: str, row: dict[str, Any], hard: dict[str, Any], field: str) -> tuple[str, str, str, str]:
    there = next(other for other in hard["rows"] if other["name"] == row["name"])
    return title, _score(row, field), _lead(row) if row["vs_first"] else "", _score(there, field)


def real_table(by_group: dict[str, Any], by_source: dict[str, Any]) -> str:
    """Macro-F1 on real failures: unseen questions, unseen sources pooled, and each source."""
    slices = by_source["by"]["values"]
    head = ("macro-F1", "unseen questions", "unseen sources", *(f"{one['value']}, n={one['n']}" for one in slices))
    names = {"compiled": "compiled with MIPROv2", **CAUSES}
    lines = [
        (
            names[row["name"]],
            _score(by_group["rows"][i], "macro_f1"),
            _score(row, "macro_f1"),
            *(_score(one["rows"][i], "macro_f1") for one in slices),
        )
        for i, row in enumerate(by_source["rows"])
    ]
    return _table(head, lines)


def real_sentence(by_group: dict[str, Any], by_source: dict[str, Any]) -> str:
    """The same in short."""
    seen, compiled = by_group["rows"][0], by_source["rows"][0]
    constant, plain = _in_order(by_source["rows"], ["constant", "uncompiled"])
    return (
        f"macro-F1 {_score(seen, 'macro_f1')} on unseen questions and {_score(compiled, 'macro_f1')} on unseen sources, "
        f"where always the same answer gets {constant['macro_f1']:.2f} and the uncompiled program {plain['macro_f1']:.2f}"
    )


def _in_order(rows: list[dict[str, Any]], names: Iterable[str]) -> list[dict[str, Any]]:
    by_name = {row["name"]: row for row in rows}
    return [by_name[name] for name in names]


def _score(row: dict[str, Any], field: str) -> str:
    low, high = row["interval"]
    return f"{row[field]:.2f} [{low:.2f}, {high:.2f}]"


def _lead(row: dict[str, Any]) -> str:
    """How far the first row is ahead; the interval turned round with the sign."""
    low, high = row["vs_first"]["interval"]
    return f"{-row['vs_first']['difference']:+.2f} [{-high:+.2f}, {-low:+.2f}]"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def speed_sentence(speed: dict[str, Any]) -> str:
    """How long it takes beside stock DSPy."""
    return (
        f"With {speed['threads']} threads and {speed['latency_s'] * 1000:.0f} ms an answer it takes {speed['ratio']:.2f} of "
        f"stock DSPy's time ({speed['ours']['seconds']:.0f} s and {speed['stock']['seconds']:.0f} s)"
    )
