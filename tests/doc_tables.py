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


def failures_table(causes: dict[str, Any], rules: dict[str, Any]) -> str:
    """Scores on our own test split, programs first."""
    compiled, few_shot, *others = causes["rows"]
    proposed, *others_rules = rules["rows"]
    return _table(
        ("", "score", "compiled is better by"),
        [
            ("**root cause** (macro-F1), compiled with MIPROv2", _score(compiled, "macro_f1"), ""),
            ("labelled few-shot, as many demos", _score(few_shot, "macro_f1"), _lead(few_shot)),
            *((CAUSES[row["name"]], _score(row, "macro_f1"), _lead(row)) for row in _in_order(others, CAUSES)),
            ("**rule** (rule score), compiled with MIPROv2", _score(proposed, "score"), ""),
            *((RULES[row["name"]], _score(row, "score"), _lead(row)) for row in _in_order(others_rules, RULES)),
        ],
    )


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
