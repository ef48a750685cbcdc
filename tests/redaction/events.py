"""An event as the recorder writes it, and texts made of parts of secrets."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.corpora.secrets import LOOK_ALIKES, SECRETS

EVENT: dict[str, Any] = {
    "id": "evt_01JDXK9QZ4T7M2V8WYB3C5D6E7",
    "agent_id": "billing-agent",
    "task": "Send the overdue notice to the tenant of unit 14 and record it in the ledger",
    "expected_outcome": "One notice sent, one ledger line",
    "actual_outcome": "KeyError: 'tenant' in render_notice; nothing was sent, ledger line written anyway",
    "severity": "high",
    "at": "2026-11-20T11:05:40.123456+00:00",
    "context": {
        "tool": "send_mail",
        "attempt": 3,
        "latency_ms": 1834,
        "trace": "plan: read unit, render, send; step 2 failed after 3 attempts, gave up",
    },
}
"""About 500 bytes of JSON, nothing of it secret."""

_BETWEEN = [
    *"\n\t\r\x00 .,;:=-_+@/\\\"'`()[]{}<>&?#%~\u00e9\u200b\ud800a7Z",
    "\\n",
    "\\u",
    "\x1b[0m",
    "://",
    '\\"',
    ": ",
]
_WHOLE = [*(each.text for each in SECRETS), *(each.secret for each in SECRETS), *LOOK_ALIKES]


def _one_of(texts: list[str]) -> st.SearchStrategy[str]:
    """By place: Hypothesis would print all of them, and warn that it is too long."""
    return st.integers(0, len(texts) - 1).map(lambda place: texts[place])


_cut = st.builds(
    lambda text, start, length: text[start : start + length], _one_of(_WHOLE), st.integers(0, 40), st.integers(1, 90)
)
_part = st.one_of(_one_of(_WHOLE), _cut, _one_of(_BETWEEN), st.text(max_size=5))
pieces = st.lists(_part, max_size=8).map("".join)
"""Secrets whole and cut, look-alikes, and what may stand between them."""
