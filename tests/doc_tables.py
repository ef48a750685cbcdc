"""The README's tables, made of committed results."""

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
