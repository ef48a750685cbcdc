"""Settings of the loop: defaults, then a TOML file, then the environment, then what the command line says."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from dspy_reflex.errors import ConfigError
from dspy_reflex.records.record import Component, Severity

FILE = "reflex.toml"
PROJECT_FILE, PROJECT_TABLE = "pyproject.toml", "dspy-reflex"
VARIABLES = {
    "REFLEX_HOME": "home",
    "REFLEX_DATABASE_URL": "database_url",
    "REFLEX_BASE_DIR": "base_dir",
    "REFLEX_LM": "lm",
}
"""Environment variable to setting."""
DEFAULT_FILES: Mapping[Component, str] = {"SOUL": "SOUL.md", "AGENTS": "AGENTS.md", "TOOLS": "TOOLS.md"}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class TargetSettings(_Part):
    """Where the rules of some agents go."""

    agent: str = "*"
    """An agent's id, or a pattern such as `support-*`."""
    with_children: bool = False
    """Whether agents that work for a matching one are meant, too."""
    root: Path
    """Folder of the rule files."""
    files: dict[Component, str] = Field(default_factory=lambda: dict(DEFAULT_FILES))
    """Component to file, below `root`."""


class ProposeSettings(_Part):
    """When a rule is worth proposing."""

    min_failures: int = Field(default=2, ge=1)
    """Failures of one cause and symptom before a rule is proposed against them."""
    min_failures_critical: int = Field(default=1, ge=1)
    """The same where one of them is critical."""


class PolicySettings(_Part):
    """A policy that approves proposals without a person. There is none unless somebody writes one down."""

    name: str = Field(min_length=1)
    """What its decisions are marked with."""
    components: tuple[Component, ...]
    """Components it may decide on."""
    causes: tuple[str, ...]
    """Root causes it may decide on."""
    min_confidence: float = Field(ge=0.0, le=1.0)
    """Least mean calibrated confidence of the diagnoses behind a proposal."""
    min_failures: int = Field(ge=1)
    """Least number of failures behind it."""
    max_severity: Severity = "medium"
    """Worst failure it may decide on."""
    per_day: int = Field(ge=1)
    """Most approvals in one day, UTC."""

    @field_validator("components")
    @classmethod
    def _soul_is_for_people(cls, components: tuple[Component, ...]) -> tuple[Component, ...]:
        if "SOUL" in components:
            raise ValueError("only a person approves a SOUL rule; take SOUL out")
        return components


class Settings(_Part):
    """Everything the loop can be told."""

    home: Path = Field(default_factory=lambda: Path.home() / ".dspy-reflex")
    """Folder of the spool, of the store unless it is elsewhere, and of patches on their way."""
    database_url: str | None = None
    """The store; None is `store.db` in `home`."""
    base_dir: Path = Path()
    """Folder of the rule files where no target says otherwise."""
    lm: str = "offline"
    """Model that diagnoses and proposes."""
    fallback: str | None = None
    """Model that diagnoses while `lm` is out of reach; what it says is done again later."""
    max_usd_per_day: float | None = Field(default=None, ge=0)
    """Most that models may cost in one day, UTC; None is no limit."""
    targets: tuple[TargetSettings, ...] = ()
    """Where rules go; the first that matches an agent counts."""
    propose: ProposeSettings = ProposeSettings()
    """When a rule is worth proposing."""
    max_file_tokens: int = Field(default=2000, ge=100)
    """Most tokens, about four characters each, that our rules may take in one file."""
    policies: tuple[PolicySettings, ...] = ()
    """What may be approved without a person."""
    retention_days: int | None = Field(default=None, ge=1)
    """How long outcomes are kept; counts stay. None is for ever."""

    @property
    def store_url(self) -> str:
        """The store's URL."""
        return self.database_url or f"sqlite:///{self.home.expanduser().absolute() / 'store.db'}"


def load_settings(file: Path | None = None, **said: Any) -> Settings:
    """The settings that hold here.

    Args:
        file: A TOML file; None looks for `reflex.toml`, then for `[tool.dspy-reflex]` in `pyproject.toml`, here.
        said: What the command line or a caller says; None says nothing.

    Raises:
        ConfigError: A file cannot be read, or a value cannot be used; says which.
    """
    source, told = _from_file(file)
    told |= {name: os.environ[variable] for variable, name in VARIABLES.items() if os.environ.get(variable)}
    told |= {name: value for name, value in said.items() if value is not None}
    try:
        return Settings.model_validate(told)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"]))
        what = "there is no such setting" if first["type"] == "extra_forbidden" else first["msg"]
        raise ConfigError(f"{_origin(name, said, source)}: {name}: {what}") from error


def _from_file(file: Path | None) -> tuple[str, dict[str, Any]]:
    if file is not None:
        return str(file), _read(file)
    if Path(FILE).is_file():
        return FILE, _read(Path(FILE))
    if Path(PROJECT_FILE).is_file():
        tools = cast("dict[str, Any]", _read(Path(PROJECT_FILE)).get("tool", {}))
        return f"[tool.{PROJECT_TABLE}] in {PROJECT_FILE}", dict(tools.get(PROJECT_TABLE, {}))
    return "defaults", {}


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: not valid TOML: {error}") from error


def _origin(name: str, said: Mapping[str, Any], source: str) -> str:
    """Who said what cannot be used."""
    field = name.partition(".")[0]
    if said.get(field) is not None:
        return f"--{field.replace('_', '-')}"
    return next((one for one, of in VARIABLES.items() if of == field and os.environ.get(one)), source)
