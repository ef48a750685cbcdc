"""A run folder: what a compile was asked for, what it made, and what that told of val."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from dspy_reflex.errors import RunError
from dspy_reflex.runs.result import Prediction, Result
from dspy_reflex.runtime.artifact import Artifact, read, taxonomy_digest

CONFIG = "config.json"
RESULT = "result.json"
PROGRAM = "program.json"
UNCOMPILED = "uncompiled.json"
PREDICTIONS = "predictions.jsonl"

T = TypeVar("T")


@dataclass(frozen=True)
class Run:
    """A finished compile."""

    folder: Path
    config: Mapping[str, Any]
    """Its options; empty if they were not kept."""
    result: Result
    program: Artifact | None
    """What it made; None in runs that keep no copy."""
    uncompiled: Artifact | None
    """The same program before compiling."""
    predictions: tuple[Prediction, ...]
    """What the compiled program told of val; empty if it was not kept."""

    @property
    def name(self) -> str:
        """What the folder is called."""
        return self.folder.resolve().name

    @property
    def options(self) -> dict[str, str]:
        """Its options, one line each; the taxonomy by name and digest and not in full."""
        taxonomy = self.config.get("taxonomy")
        if not isinstance(taxonomy, dict):
            return flat(self.config)
        labels = cast("dict[str, Any]", taxonomy)
        return flat({**self.config, "taxonomy": f"{labels.get('name')} {taxonomy_digest(labels)}"})

    @property
    def model(self) -> str:
        """The model that it was compiled for, as far as anyone wrote it down."""
        return self.program.model if self.program else str(self.config.get("lm") or "")


def read_run(folder: Path) -> Run:
    """Read a run folder; of its files only `result.json` has to be there.

    Raises:
        RunError: It is no run folder, its compile did not finish, or one of its files is damaged.
        ProgramError: One of its programs is damaged.
    """
    path = folder / RESULT
    if not path.is_file():
        raise RunError(_why_none(folder))
    data = read_object(path)
    if not is_compile(data):
        raise RunError(f"{folder}: this is the result of no compile; what it says is in its report.md or {RESULT}")
    config = folder / CONFIG
    return Run(
        folder=folder,
        config=read_object(config) if config.is_file() else {},
        result=parsed(lambda: Result.model_validate(data), path),
        program=_artifact(folder / PROGRAM),
        uncompiled=_artifact(folder / UNCOMPILED),
        predictions=_predictions(folder / PREDICTIONS),
    )


def is_compile(data: Mapping[str, Any]) -> bool:
    """Whether a `result.json` was written by a compile; others are benchmarks or what people counted."""
    return "artifact" in data and "scores" in data


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file.

    Raises:
        RunError: There is none.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path}: cannot be read ({error}); restore it, or compile again") from None
    if not isinstance(value, dict):
        raise RunError(f"{path}: should hold one JSON object; restore it, or compile again")
    return cast("dict[str, Any]", value)


def parsed(parse: Callable[[], T], where: Path | str) -> T:
    """What `parse` makes of a file; its complaint as one sentence that names the place.

    Raises:
        RunError: It had one.
    """
    try:
        return parse()
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "it"
        raise RunError(f"{where}: {field}: {first['msg'].lower()}; restore it, or compile again") from None


def flat(value: Mapping[str, Any], above: str = "") -> dict[str, str]:
    """An object as one line a value, `settings.max_demos` and not a tree; lists are compact JSON, None is empty."""
    found: dict[str, str] = {}
    for key, inner in value.items():
        name = f"{above}{key}"
        if isinstance(inner, Mapping) and inner:
            found |= flat(cast("Mapping[str, Any]", inner), f"{name}.")
        else:
            found[name] = _text(inner)
    return found


def _text(value: Any) -> str:
    if value is None or value == {}:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _why_none(folder: Path) -> str:
    if (folder / CONFIG).is_file():
        return f"{folder}: the compile is not finished; go on with `dspy-reflex compile --resume {folder}`"
    return f"{folder}: no run is there; `dspy-reflex experiments list` shows what there is"


def _artifact(path: Path) -> Artifact | None:
    return read(path) if path.is_file() else None


def _predictions(path: Path) -> tuple[Prediction, ...]:
    if not path.is_file():
        return ()
    lines = path.read_bytes().splitlines()  # of bytes: U+2028 inside a text ends no line
    return tuple(_prediction(line, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip())


def _prediction(line: bytes, where: str) -> Prediction:
    return parsed(lambda: Prediction.model_validate_json(line), where)
