"""JSON Lines to objects: bytes in, one dict a line out, and every line that is not one said so."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from dspy_reflex.evalset.problems import Problems

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    """One object of a file."""

    where: str
    """`file:line`, as messages name it."""
    data: dict[str, Any]


def read_lines(content: bytes, name: str, problems: Problems) -> list[Line]:
    """The objects of a JSON Lines file; blank lines, a byte order mark and CRLF are accepted.

    Args:
        content: The file.
        name: What messages call it.
        problems: Where lines that cannot be used are noted.
    """
    # Only \n ends a line: a form feed or U+2028 inside a JSON text does not.
    raw = content.removeprefix(BOM).split(b"\n")
    found = list(_objects(raw, name, problems))
    if not any(line.strip() for line in raw):
        problems.add(name, "the file is empty; write one JSON object a line")
    return found


def _objects(raw: list[bytes], name: str, problems: Problems) -> Iterator[Line]:
    for number, line in enumerate(raw, start=1):
        if line.strip():
            where = f"{name}:{number}"
            value, complaint = _decode(line)
            if complaint:
                problems.add(where, complaint)
            else:
                yield Line(where, value)


def _decode(line: bytes) -> tuple[dict[str, Any], str]:
    """The object of a line, or why there is none."""
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_no_constant, parse_float=_finite)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # a lone surrogate gets through loads
    except UnicodeDecodeError as error:
        return {}, f"not UTF-8 at byte {error.start + 1}; save the file as UTF-8"
    except UnicodeEncodeError:
        return {}, "half a character (a lone \\ud800-\\udfff escape); write the whole character"
    except NotANumberError as error:
        return {}, f"{error} is not a JSON number; use null or leave the field out"
    except RecursionError:
        return {}, "nested too deeply to read; flatten `context`"
    except ValueError as error:
        return {}, f"not JSON ({error}); write one whole object on one line"
    if not isinstance(value, dict):
        return {}, f"a JSON {type(cast(object, value)).__name__} where an object is needed; write {{...}} on each line"
    return cast(dict[str, Any], value), ""


class NotANumberError(ValueError):
    """NaN or an infinity, which Python reads and JSON does not have."""


def _no_constant(text: str) -> float:
    raise NotANumberError(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise NotANumberError(text)
    return number
