"""Which failures tell of the same mechanism: they are in one split, or the answers would be known beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from dspy_reflex.records.review import FiledProposal


class Families:
    """Rules of one mechanism are one family, and so are rules and failures that share a signature.

    A family has the name of its first member in alphabetical order. New failures can join two families.
    """

    def __init__(
        self, proposals: Iterable[FiledProposal], signatures: Mapping[str, Sequence[str]], began: Mapping[str, datetime]
    ) -> None:
        """Join what belongs together.

        Args:
            proposals: The rules.
            signatures: Of the failures behind each proposal, by its id.
            began: When the first failure of a signature happened; empty if nobody asks for it.
        """
        self._above: dict[str, str] = {}
        for one in proposals:
            for signature in signatures.get(one.id, ()):
                self._join(mechanism(one), _signed(signature))
        self._began: dict[str, datetime] = {}
        for signature, at in began.items():
            family = self.of_signature(signature)
            self._began[family] = min(at, self._began.get(family, at))

    def of_rule(self, proposal: FiledProposal) -> str:
        """The family of a rule."""
        return self._first(mechanism(proposal))

    def of_signature(self, signature: str) -> str:
        """The family of failures that read like this."""
        return self._first(_signed(signature))

    def began(self, family: str) -> datetime | None:
        """When the first failure of a family happened; None if that is not known."""
        return self._began.get(family)

    def _first(self, name: str) -> str:
        while (above := self._above.get(name, name)) != name:
            name = above
        return name

    def _join(self, one: str, other: str) -> None:
        first, second = sorted((self._first(one), self._first(other)))
        if first != second:
            self._above[second] = first


def mechanism(proposal: FiledProposal) -> str:
    """Target, cause and symptom of a rule."""
    return f"{proposal.agent_id}|{proposal.proposal.root_cause}|{proposal.symptom}"


def _signed(signature: str) -> str:
    """No mechanism is called like this: it would have a line end in front."""
    return f"\n{signature}"
