"""Patches in the making: what they would do to files, in memory.

What stands in a file's block is what the patches of that file add up to, and nothing else: so a change by hand is seen,
and every patch can be undone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection

from dspy_reflex.clock import now
from dspy_reflex.errors import HandEditError, ReviewError
from dspy_reflex.ids import new_id
from dspy_reflex.records.review import Patch, PatchAction
from dspy_reflex.store import proposals
from dspy_reflex.targets.block import block_of, rules_of, with_rules
from dspy_reflex.targets.conflict import conflict
from dspy_reflex.targets.diff import diff
from dspy_reflex.targets.disk import read
from dspy_reflex.targets.edit import Edit, apply_edits, from_json, to_json
from dspy_reflex.targets.intent import Change
from dspy_reflex.targets.rule import RuleLine


@dataclass(frozen=True)
class Planned:
    """Patches, and what they make of files. Nothing is written yet."""

    patches: tuple[Patch, ...] = ()
    changes: tuple[Change, ...] = ()
    names: Mapping[Path, str] = field(default_factory=dict[Path, str])
    """What to call each file."""

    @property
    def diff(self) -> str:
        """What would change, as a unified diff of all files."""
        return "".join(diff(self.names[one.path], one.before, one.after) for one in self.changes)


@dataclass
class _File:
    """A rule file on its way."""

    name: str
    content: bytes | None
    """As it is."""
    written: Mapping[str, RuleLine]
    """The rules as they were last written."""
    after: bytes | None
    """As it was last written, with the edits so far."""
    edits: list[Edit] = field(default_factory=list[Edit])


class Draft:
    """Patches in the making."""

    def __init__(self, connection: Connection, by: str) -> None:
        """Begin with none.

        Raises:
            ReviewError: Nobody is named.
        """
        if not by.strip():
            raise ReviewError("nobody is named; say with --by who does this")
        self._connection, self._by, self._at = connection, by, now()
        self._files: dict[Path, _File] = {}
        self._patches: list[Patch] = []

    def rules(self, path: Path, name: str) -> tuple[RuleLine, ...]:
        """The rules in a file, with what is planned so far.

        Raises:
            TargetError: The file cannot be read.
        """
        return rules_of(self._file(path, name).after, name)

    def add(self, proposal_id: str, action: PatchAction, path: Path, name: str, edits: Sequence[Edit]) -> None:
        """One more patch.

        Raises:
            TargetError: The file cannot be read, or a rule is not what an edit expects.
        """
        file = self._file(path, name)
        before, file.after = file.after, apply_edits(file.after, edits, file.name)
        file.edits.extend(edits)
        self._patches.append(
            Patch(
                id=new_id("patch"), proposal_id=proposal_id, at=self._at, by=self._by, action=action, file=str(path),
                before_sha256=_digest(before), after_sha256=_digest(file.after),
                body={"name": name, "edits": to_json(edits)},
            )
        )  # fmt: skip

    def _file(self, path: Path, name: str) -> _File:
        if path not in self._files:
            self._files[path] = _opened(self._connection, path, name)
        return self._files[path]

    def planned(self) -> Planned:
        """All of it.

        Raises:
            HandEditError: The rules in a file are neither as they were written nor as they are to be.
        """
        for file in self._files.values():
            _refuse_hand_edits(file)
        changes = tuple(Change(path, file.content, file.after) for path, file in self._files.items())
        return Planned(tuple(self._patches), changes, {path: file.name for path, file in self._files.items()})


def edits_of(patch: Patch) -> tuple[Edit, ...]:
    """What a patch did to its file."""
    return from_json(patch.body["edits"])


def touched(patch: Patch) -> set[str]:
    """The rules that a patch changed."""
    return {rule_id for edit in edits_of(patch) for rule_id in edit.rule_ids}


def went_in(patch: Patch) -> set[str]:
    """The rules that a patch put into its file."""
    return {edit.new.rule_id for edit in edits_of(patch) if edit.new and not edit.old}


def name_of(patch: Patch) -> str:
    """What the settings called its file at the time."""
    return str(patch.body["name"])


def rules_after(patches: Iterable[Patch], until: datetime | None = None) -> dict[str, RuleLine]:
    """What patches of one file, oldest first, add up to, all of them or those up to a time."""
    rules: dict[str, RuleLine] = {}
    for patch in patches:
        if until is None or patch.at <= until:
            for edit in edits_of(patch):
                if edit.old:
                    rules.pop(edit.old.rule_id, None)
                if edit.new:
                    rules[edit.new.rule_id] = edit.new
    return rules


def _opened(connection: Connection, path: Path, name: str) -> _File:
    content = read(path)
    written = rules_after(proposals.patches_of(connection, file=str(path)))
    return _File(name, content, written, with_rules(content, written.values(), name))


def _refuse_hand_edits(file: _File) -> None:
    stands = block_of(file.content, file.name)
    written = with_rules(file.content, file.written.values(), file.name)
    if stands not in (block_of(written, file.name), block_of(file.after, file.name)):
        shown = conflict(file.content, file.written.values(), file.edits, file.name)
        raise HandEditError(
            f"{file.name}: its block of rules was changed by hand since it was written; put it back as shown, then try again",
            shown,
        )


def _digest(content: bytes | None) -> str:
    return hashlib.sha256(content or b"").hexdigest()
