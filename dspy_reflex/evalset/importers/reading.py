"""Files as published to records: JSON, JSON Lines, CSV, a folder of them, or a data set of the Hugging Face hub."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ValidationError

from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.importers.frames import csv_objects
from dspy_reflex.evalset.importers.hub import HUB, hub_objects
from dspy_reflex.evalset.lines import BOM, NotANumberError, read_lines
from dspy_reflex.evalset.problems import Problems
from dspy_reflex.untrusted import as_text

SUFFIXES = (".json", ".jsonl", ".csv")

Model = TypeVar("Model", bound=BaseModel)
Text = Annotated[str, BeforeValidator(as_text)]
"""Text of whatever a data set has there: None, a number, a list of parts."""


@dataclass(frozen=True, slots=True)
class Record:
    """One object of a data set."""

    where: str
    """`file:line`, or `file:number` of the object in a list or table; as messages name it."""
    data: dict[str, Any]
    name: str
    """The file's name without its ending, or configuration and split of a hub data set."""


def read_records(path: str, problems: Problems) -> list[Record]:
    """All objects of a file, of a folder's files, or of `hf:owner/name[:split]`.

    Raises:
        DatasetError: There is nothing of that name, or it is of a kind that is not read.
        MissingExtraError: It needs packages of the extra [compile].
    """
    if path.startswith(HUB):
        return [Record(*found) for found in hub_objects(path)]
    return [record for file in _files(Path(path)) for record in _file_records(file, problems)]


def parse(record: Record, model: type[Model], kind: str, problems: Problems) -> Model | None:
    """A record as the data set's makers publish it; None if it is not like that, and every difference is noted."""
    try:
        return model.model_validate(record.data)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False, include_context=False):
            place = ".".join(str(part) for part in detail["loc"]) or "record"
            what = "is missing" if detail["type"] == "missing" else f"cannot be used ({detail['msg']})"
            problems.add(record.where, f"{place} {what}; is this {kind} as published, or another version of it?")
        return None


def _files(place: Path) -> list[Path]:
    if not place.is_dir():
        return [place]
    files = sorted(file for file in place.rglob("*") if file.suffix in SUFFIXES and not file.name.startswith("."))
    if not files:
        raise DatasetError(f"{place}: no {', '.join(SUFFIXES)} file in this folder; give the folder as published")
    return files


def _file_records(file: Path, problems: Problems) -> Iterator[Record]:
    content = _content(file)
    if file.suffix == ".csv":
        objects = csv_objects(content, str(file), problems)
    elif file.suffix == ".jsonl":
        objects = [(line.where, line.data) for line in read_lines(content, str(file), problems)]
    elif file.suffix == ".json":
        objects = _document(content, str(file), problems)
    else:
        raise DatasetError(f"{file}: a file that is not read; give {', '.join(SUFFIXES)}, or hf:owner/name")
    for where, data in objects:
        yield Record(where, data, file.stem)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        raise DatasetError(f"{file}: no such file or folder; give what was published, or hf:owner/name") from None
    except OSError as error:
        raise DatasetError(f"{file}: cannot be read ({error.strerror}); check its permissions") from None


def _document(content: bytes, file: str, problems: Problems) -> list[tuple[str, dict[str, Any]]]:
    """The objects of a JSON document: one, or a list of them."""
    value, complaint = _decode(content)
    if complaint:
        problems.add(f"{file}:1", complaint)
        return []
    objects: list[tuple[str, dict[str, Any]]] = []
    items = cast(list[object], value) if isinstance(value, list) else [value]
    for number, item in enumerate(items, start=1):
        where = f"{file}:{number}"
        if isinstance(item, dict):
            objects.append((where, cast(dict[str, Any], item)))
        else:
            problems.add(where, f"a JSON {type(item).__name__} where an object is needed; is this another file?")
    return objects


def _decode(content: bytes) -> tuple[object, str]:
    """The value of a JSON document, or why there is none."""
    if not content.removeprefix(BOM).strip():
        return None, "the file is empty; fetch it again"
    try:
        return json.loads(content.removeprefix(BOM).decode(), parse_constant=_no_constant), ""
    except UnicodeDecodeError as error:
        return None, f"not UTF-8 at byte {error.start + 1}; save the file as UTF-8"
    except NotANumberError as error:
        return None, f"{error} is not a JSON number; use null or leave the field out"
    except RecursionError:
        return None, "nested too deeply to read; fetch the file again"
    except ValueError as error:
        return None, f"not JSON ({error}); fetch the file again, or name it .jsonl if it has one object a line"


def _no_constant(text: str) -> float:
    raise NotANumberError(text)
