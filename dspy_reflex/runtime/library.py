"""Where compiled programs are, and which one is current for a model.

A library is a folder with `<program>/<version>.json` and, for each program, `current.json`: model to version. Looked
through in this order: `./programs`, `programs` in the user's folder, the programs bundled with the package.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TypeGuard, cast

from dspy_reflex.errors import ProgramError
from dspy_reflex.files import write_atomic
from dspy_reflex.runtime.artifact import ANY_MODEL, Artifact, read

CURRENT = "current.json"


def home() -> Path:
    """The user's folder: `REFLEX_HOME`, or `.dspy-reflex` in the home directory."""
    return Path(os.environ.get("REFLEX_HOME") or Path.home() / ".dspy-reflex")


def bundled(what: str) -> Path:
    """Data that the package brings, `programs` or `datasets`; in a checkout, the folder of that name."""
    package = Path(str(files("dspy_reflex")))
    inside = package / "_bundled" / what
    return inside if inside.is_dir() else package.parent / what


def libraries() -> list[Path]:
    """The folders that are looked through, in order; those that exist."""
    places = [Path("programs"), home() / "programs", bundled("programs")]
    return [place for i, place in enumerate(places) if place.is_dir() and place.resolve() not in
            [other.resolve() for other in places[:i]]]  # fmt: skip


def find(
    program: str, model: str, places: Sequence[Path] | None = None, labels: Sequence[str] | None = None
) -> Artifact:
    """The current program for a model: one compiled for it, else the guide, which was compiled for none.

    Args:
        program: `root_cause` or `rule`.
        model: The model it has to be compiled for, if there is such a one.
        places: Libraries to look through; by default all.
        labels: Its label set, where it has to go with another program.

    Raises:
        ProgramError: There is neither, or the file is damaged.
    """
    folders = libraries() if places is None else list(places)
    for wanted in (model, ANY_MODEL):
        for folder in folders:
            version = current(folder, program).get(wanted)
            artifact = _read(folder / program / f"{version}.json", program) if version else None
            if artifact and (labels is None or tuple(labels) == artifact.labels):
                return artifact
    looked = ", ".join(map(str, folders)) or "no folder"
    raise ProgramError(f"there is no {program} program for {model} in {looked}; make one with `dspy-reflex compile`")


def named(name: str) -> Artifact | None:
    """The program of this name, such as `root_cause@0a1b2c3d4e5f`, from the first library that has it.

    Raises:
        ProgramError: Its file is damaged.
    """
    program, _, version = name.partition("@")
    if not (program.isidentifier() and version.isalnum()):
        return None
    paths = (folder / program / f"{version}.json" for folder in libraries())
    return next((_read(path, program) for path in paths if path.is_file()), None)


def opened(given: Path, places: Sequence[Path] | None = None) -> Artifact:
    """A program by its file, or by its version or name as commands print them, from the first library that has it.

    Raises:
        ProgramError: There is no such program, or its file is damaged.
    """
    if given.is_file():
        return read(given)
    version = str(given).rpartition("@")[2]
    return read(next((path for path in everything(places) if path.stem == version), given))


def _read(path: Path, program: str) -> Artifact:
    artifact = read(path)
    if artifact.program != program:
        raise ProgramError(f"{path}: this is a {artifact.program} program, not a {program} program; compile it again")
    return artifact


def current(folder: Path, program: str) -> dict[str, str]:
    """Model to version of its current program.

    Raises:
        ProgramError: The file is damaged.
    """
    path = folder / program / CURRENT
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise ProgramError(f"{path}: cannot be read ({error}); delete it and compile again") from None
    if not _maps_names(found):
        raise ProgramError(f"{path}: should map models to versions; delete it and compile again")
    return found


def _maps_names(found: object) -> TypeGuard[dict[str, str]]:
    pairs = cast("dict[object, object]", found).items() if isinstance(found, dict) else [(0, 0)]
    return all(isinstance(model, str) and isinstance(version, str) for model, version in pairs)


def set_current(folder: Path, artifact: Artifact) -> None:
    """Make a program the current one of its model."""
    now = {**current(folder, artifact.program), artifact.model: artifact.version}
    text = json.dumps(now, indent=1, sort_keys=True) + "\n"
    write_atomic(folder / artifact.program / CURRENT, text.encode())


def everything(places: Sequence[Path] | None = None) -> Iterator[Path]:
    """Every program file in the libraries, in order."""
    for folder in libraries() if places is None else places:
        for path in sorted(folder.glob("*/*.json")):
            if path.name != CURRENT:
                yield path
