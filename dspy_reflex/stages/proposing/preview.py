"""The rule file of a proposal: what stands in it, and what it would be with the rule."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dspy_reflex.config import Settings, TargetSettings
from dspy_reflex.errors import TargetError
from dspy_reflex.records.review import FiledProposal
from dspy_reflex.stages.patching.apply import edits_for
from dspy_reflex.targets.block import rules_of
from dspy_reflex.targets.diff import diff
from dspy_reflex.targets.disk import read
from dspy_reflex.targets.edit import apply_edits
from dspy_reflex.targets.markdown import decode, rules_in
from dspy_reflex.targets.where import RuleFile, rule_file


@dataclass(frozen=True)
class Preview:
    """What approving a proposal would lead to."""

    base: str
    """SHA-256 of the file as it is now; of nothing if there is none."""
    diff: str
    """What the rule would change in it, as a unified diff."""


def preview(proposal: FiledProposal, settings: Settings) -> Preview:
    """The file of a proposal with its rule.

    Raises:
        TargetError: The file cannot be read, or no rule can be written to it.
    """
    file = _file_of(proposal, settings)
    before = read(file.path)
    edits = edits_for(proposal, rules_of(before, file.name), file)
    return Preview(_digest(before), diff(file.name, before, apply_edits(before, edits, file.name)))


def base_of(path: Path) -> str:
    """SHA-256 of a file; of nothing if there is none.

    Raises:
        TargetError: It cannot be read.
    """
    return _digest(read(path))


def existing_rules(target: TargetSettings) -> dict[str, str]:
    """The rules in a target's files, ours and others', with the file that each is in.

    Raises:
        TargetError: A file cannot be read or used.
    """
    files = {file.path: file for file in (rule_file(target, component) for component in target.files)}
    texts = {file.name: decode(read(path) or b"", file.name) for path, file in files.items()}
    return {rule: name for name, text in texts.items() for rule in rules_in(text)}


def _file_of(proposal: FiledProposal, settings: Settings) -> RuleFile:
    """The file that the proposal was made for, with the section that its target keeps for the component."""
    path, component = Path(proposal.file), proposal.proposal.component
    for target in (*settings.targets, TargetSettings(root=settings.base_dir)):
        if target.agent == proposal.agent_id:
            with suppress(TargetError):
                file = rule_file(target, component)
                if file.path == path:
                    return file
    return RuleFile(path, path.name, None)


def _digest(content: bytes | None) -> str:
    return hashlib.sha256(content or b"").hexdigest()
