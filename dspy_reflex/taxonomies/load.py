"""Reads a taxonomy: a preset by its name, or a TOML file of the user's.

A file has a `name`, an optional `guide`, and one `[[cause]]` table per label with `name`, `definition` and, if wanted,
`boundary` and `example`. The presets are such files and may be copied from.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dspy_reflex.errors import TaxonomyError
from dspy_reflex.records.taxonomy import RootCause, Taxonomy

DEFAULT = "six"
"""The preset that the compiled programs are made for."""

_PACKAGE = "dspy_reflex.taxonomies"
_SHAPE = "a taxonomy file has name, an optional guide, and [[cause]] tables with name and definition"


class _Cause(BaseModel):
    """A `[[cause]]` table as written."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    name: str
    definition: str = Field(min_length=1)
    boundary: str = ""
    example: str = ""
    remedy: str = ""


class _File(BaseModel):
    """A taxonomy file as written."""

    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)

    name: str = Field(min_length=1)
    guide: str = ""
    cause: tuple[_Cause, ...]


def presets() -> tuple[str, ...]:
    """Names of the taxonomies that come with the package, sorted."""
    found = (entry.name for entry in files(_PACKAGE).iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml")))


def load_taxonomy(name_or_path: str = DEFAULT) -> Taxonomy:
    """Read a taxonomy.

    Args:
        name_or_path: Name of a preset, which wins over a file of that name, or path of a TOML file.

    Raises:
        TaxonomyError: There is no such preset or file, or it is no taxonomy.
    """
    if name_or_path in presets():
        return _preset(name_or_path)
    try:
        content = Path(name_or_path).read_bytes()
    except FileNotFoundError as error:
        known = ", ".join(presets())
        raise TaxonomyError(f"no taxonomy {name_or_path!r}: name one of {known}, or the path of a TOML file") from error
    except (OSError, ValueError) as error:
        raise TaxonomyError(f"{name_or_path}: cannot be read: {error}; check the path and its permissions") from error
    return _parse(content, name_or_path)


@cache
def _preset(name: str) -> Taxonomy:
    source = files(_PACKAGE).joinpath(f"{name}.toml")
    return _parse(source.read_bytes(), source.name)


def _parse(content: bytes, source: str) -> Taxonomy:
    try:
        raw = _File.model_validate(tomllib.loads(content.decode()))
        causes = tuple(RootCause(**cause.model_dump()) for cause in raw.cause)
        return Taxonomy(name=raw.name, causes=causes, guide=raw.guide)
    except UnicodeDecodeError as error:
        raise TaxonomyError(f"{source}: not UTF-8 text; save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise TaxonomyError(f"{source}: not valid TOML: {error}; correct that line") from error
    except ValidationError as error:
        raise TaxonomyError(f"{source}: {_reason(error)}; {_SHAPE}") from error


def _reason(error: ValidationError) -> str:
    """The first thing wrong, in one clause."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    shown = f" (it is {first['input']!r})" if isinstance(first["input"], str) else ""
    return f"{where}: {first['msg']}{shown}" if where else first["msg"]
