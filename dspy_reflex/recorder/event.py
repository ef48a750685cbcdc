"""An event as bytes: one JSON object with a fixed set of keys, free of secrets, small enough for a frame.

| key | value |
|---|---|
| `id`, `at` | a ULID with its prefix; microseconds since 1970, UTC |
| `agent_id`, `parent_agent_id` | text; the second may be null |
| `ok` | whether the run went well; then only `task` may follow |
| `task`, `expected_outcome`, `actual_outcome`, `severity` | text or null |
| `context` | any JSON |
| `redacted` | how many secrets of each kind were taken out; not there if none were |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import orjson

from dspy_reflex.recorder.frames import MAX_PAYLOAD_BYTES
from dspy_reflex.redaction.redact import redact_value
from dspy_reflex.redaction.scan import clears

MAX_BODY_BYTES = MAX_PAYLOAD_BYTES - 200
"""All but `id` and `at`."""
MAX_TEXT_CHARS = (MAX_BODY_BYTES, 32_000, 5_000)
"""Characters of one text, tried in turn until the event fits: the last always does, at six bytes a character."""
HEAD_SHARE = 0.4
"""Share of a clipped text that its beginning gets, as in `untrusted.clip`."""
MARGIN_CHARS = 4_000
"""What is looked at on either side of a cut, so that a secret cut in two is known for one."""

Counts = Mapping[str, int]


class Redaction(Protocol):
    """Takes secrets out of events."""

    def clears(self, payload: bytes) -> bool:
        """Whether nothing in it can be a secret: a quick look."""
        ...

    def redact_value(self, value: Any) -> tuple[Any, Counts]:
        """The value without secrets, and how many of each kind there were: a thorough one."""
        ...


class Patterns:
    """The patterns of this package."""

    clears = staticmethod(clears)
    redact_value = staticmethod(redact_value)


def encode(event: Mapping[str, Any], identity: str, at_us: int, redaction: Redaction) -> bytes:
    """The bytes of an event.

    Identity and time are put in front afterwards: their digits could be taken for those of a card.

    Raises:
        Exception: Whatever the event's own objects or the redaction raise; nothing unredacted comes out.
    """
    body = _dumps(_kept(event))
    fits = len(body) <= MAX_BODY_BYTES
    if not (fits and redaction.clears(body)):
        body = _redacted(orjson.loads(body), redaction, MAX_TEXT_CHARS if fits else MAX_TEXT_CHARS[1:])
    return b'{"id":"%b","at":%d,%b' % (identity.encode(), at_us, body[1:])


def _kept(event: Mapping[str, Any]) -> dict[str, Any]:
    get = event.get
    kept: dict[str, Any] = {
        "agent_id": _text(get("agent_id")) or "",
        "parent_agent_id": _text(get("parent_agent_id")),
        "ok": bool(get("ok")),
    }
    if kept["ok"]:
        return kept if get("task") is None else {**kept, "task": _text(get("task"))}
    for name in ("task", "expected_outcome", "actual_outcome", "severity"):
        kept[name] = _text(get(name))
    kept["context"] = get("context")
    return kept


def _text(value: object) -> str | None:
    if value is None or type(value) is str:
        return value
    from dspy_reflex.untrusted import as_text

    return as_text(value)


def _dumps(value: Any) -> bytes:
    """As JSON; what JSON does not have becomes text."""
    try:
        return orjson.dumps(value)
    except Exception:  # noqa: BLE001 - an object's own code ran: whatever it raised, the rest must still be told
        from dspy_reflex.untrusted import plain

        return orjson.dumps(_sound(plain(value)))


def _sound(value: Any) -> Any:
    """A plain value with what orjson refuses replaced: lone surrogates by U+FFFD, integers above 64 bits by text."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_sound(key): _sound(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_sound(item) for item in cast("list[Any]", value)]
    return str(value) if isinstance(value, int) and not -(2**63) <= value < 2**64 else value


def _redacted(kept: dict[str, Any], redaction: Redaction, limits: tuple[int, ...]) -> bytes:
    body = b""
    for limit in limits:
        found = Counter[str]()

        def redact(value: Any, found: Counter[str] = found) -> Any:
            value, counts = redaction.redact_value(value)
            found.update(counts)
            return value

        small = {name: _clipped(value, limit, redact) for name, value in kept.items()}
        body = _dumps({**small, "redacted": found} if found else small)
        if len(body) <= MAX_BODY_BYTES:
            break
    return body


def _clipped(value: Any, limit: int, redact: Callable[[Any], Any]) -> Any:
    """A value redacted; if it is too long its beginning and end, with a mark between them as `untrusted.clip` makes."""
    if not isinstance(value, str):
        if len(orjson.dumps(value)) <= limit:
            return redact(value)
        value = _text(value) or ""
    if len(value) <= limit:
        return redact(value)
    head = int(limit * HEAD_SHARE)
    tail = limit - head
    first = redact(value[: head + MARGIN_CHARS])[:head]
    last = redact(value[-tail - MARGIN_CHARS :])[-tail:]
    return f"{first}\n\u2026[{len(value) - limit} characters left out]\u2026\n{last}"
