"""The compiled program's file: one JSON object that says all there is to know about the program.

Both wings know this format and nothing else of each other. A file is trusted only after its digest, format and label
set were checked. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeGuard

from dspy_reflex.errors import ProgramError
from dspy_reflex.runtime.calibration import Calibration
from dspy_reflex.runtime.retrieve import VECTORIZER, Retrieval

FORMAT = "dspy-reflex/program"
FORMAT_VERSION = 1
ANY_MODEL = "any"
"""The model of a program that was compiled for none: the guide alone, no demos, no cues."""

REQUIRED = (
    "program", "inputs", "outputs", "messages", "tail", "labels", "taxonomy", "taxonomy_digest", "model", "threshold", "demos",
    "optimizer", "seed", "data", "scores", "instructions", "dspy_version",
)  # fmt: skip


@dataclass(frozen=True)
class Artifact:
    """A checked artefact. `data` is the file's content; the attributes are what the runtime reads of it."""

    data: Mapping[str, Any]

    @property
    def program(self) -> str:
        """Which program it is: `root_cause` or `rule`."""
        return self.data["program"]

    @property
    def version(self) -> str:
        """Twelve hex digits of its content."""
        return self.data["digest"][:12]

    @property
    def name(self) -> str:
        """Program and version, as a diagnosis quotes them."""
        return f"{self.program}@{self.version}"

    @property
    def model(self) -> str:
        """The model it was compiled for; `any` for the guide-only program."""
        return self.data["model"]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The label set of its taxonomy, in order."""
        return tuple(self.data["labels"])

    @property
    def threshold(self) -> float | None:
        """Confidence, calibrated if that can be, below which an answer needs review; None where none was measured."""
        return self.data["threshold"]

    @property
    def calibration(self) -> Calibration | None:
        """What turns stated confidence into a probability; None where none was fitted. It holds for `model` only."""
        data = self.data.get("calibration")
        return None if data is None else Calibration.from_json(data)

    @cached_property
    def retrieval(self) -> Retrieval | None:
        """Where the examples shown with an input come from; None for a program that shows the same ones with any."""
        data = self.data.get("retrieval")
        return None if data is None else Retrieval.from_json(data, self.inputs)

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the input fields, in the order of the prompt."""
        return tuple(field["name"] for field in self.data["inputs"])

    @property
    def score(self) -> str:
        """What it scored on the data it was selected on, in words; `unmeasured` when nobody measured it."""
        scores = self.data["scores"]
        if not scores:
            return "unmeasured"
        low, high = scores["interval"]
        return f"{scores['on']} {scores['metric']} {scores['value']:.2f} [{low:.2f}, {high:.2f}], n={scores['n']}"

    def to_dspy(self) -> dict[str, Any]:
        """The state that `dspy.Module.load_state` takes; its file form is what `dspy.Module.load` reads.

        Raises:
            ProgramError: The program retrieves its examples, and a state has no room for an index.
        """
        if self.retrieval:
            raise ProgramError(
                f"{self.name} retrieves its examples for each input, which a state of DSPy's cannot hold; "
                "`dspy_reflex.optimize.publish.load_module` makes the module that does the same in DSPy"
            )
        fields = [*self.data["inputs"], *self.data["outputs"]]
        described = [{"prefix": field["prefix"], "description": field["desc"]} for field in fields]
        signature = {"instructions": self.data["instructions"], "fields": described}
        demos = [{**demo["values"], "augmented": demo["bootstrapped"]} for demo in self.data["demos"]]
        versions = {"dependency_versions": {"dspy": self.data["dspy_version"]}}
        state = {"traces": [], "train": [], "demos": demos, "signature": signature, "lm": None}
        return {"predict": state, "metadata": versions}


def digest_of(data: Mapping[str, Any]) -> str:
    """SHA-256 over the canonical JSON of everything but the digest itself, in hex."""
    content = {key: value for key, value in data.items() if key != "digest"}
    return hashlib.sha256(_canonical(content).encode()).hexdigest()


def seal(content: Mapping[str, Any]) -> Artifact:
    """Make an artefact out of its content: add format and digest.

    Raises:
        ProgramError: A required key is missing.
    """
    data = {"format": FORMAT, "format_version": FORMAT_VERSION, **content}
    return check({**data, "digest": digest_of(data)}, "the new artefact")


def dumps(artifact: Artifact) -> str:
    """The file's text: indented for people, the same bytes for the same content."""
    return json.dumps(artifact.data, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def read(path: Path) -> Artifact:
    """Read and check a file.

    Raises:
        ProgramError: It is missing, not JSON, of another format, or was changed since it was written.
    """
    try:
        return check(json.loads(path.read_text(encoding="utf-8")), str(path))
    except FileNotFoundError:
        raise ProgramError(f"{path}: no such program file; `dspy-reflex programs list` shows what there is") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ProgramError(f"{path}: cannot be read as a program ({error}); compile it again") from None


def check(data: Any, where: str) -> Artifact:
    """Check format, keys, digest and label set of a parsed file; `where` is named in errors.

    Raises:
        ProgramError: One of them is wrong.
    """
    if not _is_object(data) or data.get("format") != FORMAT:
        raise ProgramError(f"{where}: not a dspy-reflex program; give a file made by `dspy-reflex compile`")
    if data.get("format_version") != FORMAT_VERSION:
        raise ProgramError(f"{where}: program format {data.get('format_version')!r} is not {FORMAT_VERSION}; recompile")
    if missing := [key for key in (*REQUIRED, "digest") if key not in data]:
        raise ProgramError(f"{where}: the program lacks {', '.join(missing)}; compile it again")
    if data["digest"] != digest_of(data):
        raise ProgramError(f"{where}: the program was changed after it was compiled (digest differs); compile it again")
    artifact = Artifact(data)
    try:
        well_formed = _well_formed(artifact)
    except (TypeError, KeyError, AttributeError, ValueError):
        well_formed = False
    if not well_formed:
        raise ProgramError(f"{where}: the program's parts do not have the form they should have; compile it again")
    _check_labels(data, where)
    _check_vectorizer(artifact, where)
    return artifact


def _well_formed(artifact: Artifact) -> bool:
    """Whether what the runtime reads is of the types it expects; what cannot be read is an error of Python's."""
    data = artifact.data
    texts = [data["program"], data["tail"], data["model"], data["instructions"], *data["labels"]]
    texts += [text for message in data["messages"] for text in (message["role"], message["content"])]
    texts += [field["name"] for field in (*data["inputs"], *data["outputs"])]
    texts += [choice for field in data["outputs"] for choice in field.get("choices", ())]
    lists = all(isinstance(data[key], list) for key in ("labels", "messages", "inputs", "outputs", "demos"))
    if data.get("calibration") is not None:
        Calibration.from_json(data["calibration"])
    if artifact.retrieval:
        texts.append(data["retrieval"]["vectorizer"])
    return lists and all(isinstance(text, str) for text in texts)


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _check_labels(data: dict[str, Any], where: str) -> None:
    choices = {field["name"]: field.get("choices") for field in data["outputs"]}
    asked = choices.get("root_cause")
    if asked is not None and list(asked) != list(data["labels"]):
        raise ProgramError(f"{where}: the prompt's labels are not the taxonomy's; compile it again")
    causes = [cause["name"] for cause in data["taxonomy"]["causes"]]
    if causes != list(data["labels"]) or taxonomy_digest(data["taxonomy"]) != data["taxonomy_digest"]:
        raise ProgramError(f"{where}: the taxonomy is not the one its digest was made of; compile it again")


def _check_vectorizer(artifact: Artifact, where: str) -> None:
    found = artifact.data["retrieval"]["vectorizer"] if artifact.retrieval else VECTORIZER
    if found != VECTORIZER:
        raise ProgramError(
            f"{where}: it retrieves by {found!r} and this version by {VECTORIZER!r}; "
            "use the version that compiled it, or compile it again"
        )


def taxonomy_digest(taxonomy: Mapping[str, Any]) -> str:
    """First 16 hex digits of the SHA-256 of a taxonomy's content, as `Taxonomy.digest`."""
    text = json.dumps(taxonomy, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _canonical(content: Mapping[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
