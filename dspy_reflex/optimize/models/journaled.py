"""A model as a compile asks it: from the journal if the answer is there, else for money, within the budget.

One client serves DSPy while it searches and the light runtime while it measures, so a program is measured on the very
requests that it will send, and none of them is paid for twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from dspy_reflex.errors import JournalError, ModelError, ModelUnavailableError
from dspy_reflex.optimize.models.journal import Journal, key_of
from dspy_reflex.optimize.models.ledger import Ledger, Phase
from dspy_reflex.runtime.lm.connect import OFFLINE_NAMES, connect, endpoint
from dspy_reflex.runtime.lm.model import PLAIN, Completion, LanguageModel, Message, Sampling

if TYPE_CHECKING:
    from dspy_reflex.runtime.lm.claude import Claude

Role = Literal["task", "prompt", "teacher", "measure"]
ATTEMPTS = 10
"""How often a call is sent before it is given up: a compile can wait, and must not score an outage."""
TIMEOUT_S = 120.0
ANSWER_TOKENS = 1024
"""Longest answer of a program: what the light runtime allows, too."""
PROMPT_TOKENS = 4096
"""Longest answer of a prompt model: it writes whole instructions. Question and answer must fit in its context together."""
SMALLEST_BATCH = 8
"""Fewer questions are sooner asked one by one."""
BATCH_PREFIX = "anthropic/"
"""Models of the one provider whose batches are spoken."""
WAITED_FOR: tuple[Phase, ...] = ("bootstrap", "propose")
"""What everything else waits for; scores are wanted later."""
SPENT: ContextVar[list[int]] = ContextVar("spent")
"""Tokens of each answer that was put on the bill in this context, where somebody wants to know."""
CHARS_PER_TOKEN = 4
"""A guess, for what a question takes of the budget before the provider has counted it."""


class JournaledModel:
    """A `LanguageModel` whose answers are kept, and whose cost is counted. Safe with threads."""

    def __init__(
        self, model: LanguageModel, role: Role, journal: Journal, ledger: Ledger, place: dict[str, Any]
    ) -> None:
        """Ask `model` in a role; `place` is what its answers depend on besides the question."""
        self.name = model.name
        self._model, self._role, self._journal, self._ledger, self._place = model, role, journal, ledger, place

    def __deepcopy__(self, memo: dict[int, Any]) -> JournaledModel:
        """DSPy copies its models freely; there is one connection, one journal and one bill."""
        return self

    def complete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """Answer one chat.

        Raises:
            ModelError: The model cannot be used, or gave no answer.
            BudgetError: There is no room for the question.
            JournalError: The answer cannot be kept.
        """
        key = self.key(messages, sampling)
        with self._journal.turn(key):
            answer = self._journal.find(key)
            if answer is None:
                return self._paid_for(key, messages, sampling)
        if self._ledger.first(key):
            self._bill(answer, replayed=not self._ledger.has_bought(key))
        return answer

    async def acomplete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """The same; a compile has threads, and no event loop to keep free."""
        return self.complete(messages, sampling)

    def prefill(self, chats: Sequence[list[Message]], folder: Path, say: Callable[[str], None]) -> None:
        """Answer what is not in the journal yet through the provider's batches, at half the price.

        Args:
            chats: Questions that are about to be asked, one by one.
            folder: Where what is known of each batch is kept, for a sitting that goes on.
            say: Told how far it is.

        Raises:
            ModelError: It is out of reach, or does not take them.
        """
        from dspy_reflex.runtime.lm.batches.run import complete_all

        missing = {key: chat for chat in chats if self._journal.find(key := self.key(chat)) is None}
        tokens = sum(map(_length, missing.values()))
        if len(missing) < SMALLEST_BATCH or not self._ledger.has_room(self.name, len(missing), tokens):
            return
        state = folder / f"{key_of({'asked': sorted(missing)})[:16]}.json"
        answers = complete_all(cast("Claude", self._model), [*missing.values()], state, say)
        for key, answer in zip(missing, answers, strict=True):
            if answer is not None:  # the others are asked one by one
                self._ledger.bought(key)
                self._journal.note(key, replace(answer, batch=True))

    def key(self, messages: list[Message], sampling: Sampling = PLAIN) -> str:
        """What the answer to a chat is kept under."""
        drawn = {"temperature": sampling.temperature, "seed": sampling.seed}
        return key_of({**self._place, **drawn, "messages": messages})

    def _paid_for(self, key: str, messages: list[Message], sampling: Sampling) -> Completion:
        urgent = self._phase in WAITED_FOR
        with self._ledger.line.place(urgent=urgent), self._ledger.asking(self.name, _length(messages)):
            answer = self._answered(messages, sampling)
            self._note(key, answer)
            self._ledger.first(key)
            self._bill(answer)
        return answer

    def _bill(self, answer: Completion, *, replayed: bool = False) -> None:
        self._ledger.add(self._phase, self.name, answer, replayed=replayed)
        SPENT.get([]).append(answer.input_tokens + answer.output_tokens)

    def _answered(self, messages: list[Message], sampling: Sampling) -> Completion:
        while True:
            try:
                return self._model.complete(messages, sampling)
            except ModelUnavailableError as error:
                self._ledger.give_up(error)
            except ModelError as error:
                self._ledger.stop(error)
                raise

    def _note(self, key: str, answer: Completion) -> None:
        """Keep an answer; where that fails, nothing more is paid for."""
        try:
            self._journal.note(key, answer)
        except JournalError as error:
            self._ledger.stop(error)
            raise

    @property
    def _phase(self) -> Phase:
        if self._role == "measure":
            return "measure"
        if self._role == "prompt":
            return "propose"
        return "evaluate" if self._ledger.evaluating else "bootstrap"


def _length(messages: list[Message]) -> int:
    return sum(len(message["content"]) for message in messages) // CHARS_PER_TOKEN


def journaled(name: str, role: Role, journal: Journal, ledger: Ledger) -> JournaledModel:
    """The model of a name, in a role of a compile.

    Raises:
        ModelNotConfiguredError: Its provider, key or address is not known.
        MissingExtraError: Its client is not installed.
    """
    longest = PROMPT_TOKENS if role == "prompt" else ANSWER_TOKENS
    model = connect(name, timeout_s=TIMEOUT_S, attempts=ATTEMPTS, max_tokens=longest)
    if name in OFFLINE_NAMES:
        return JournaledModel(model, role, journal, ledger, {"model": model.name, "code": offline_code()})
    place = {"model": name, "endpoint": endpoint(name).url, "max_tokens": longest}
    return JournaledModel(model, role, journal, ledger, place)


@cache
def offline_code() -> str:
    """Hash of the offline learner's source: its answers are as good as its code, and both change together."""
    files = resources.files("dspy_reflex.runtime.lm.offline").iterdir()
    sources = sorted((file.name, file.read_bytes()) for file in files if file.name.endswith(".py"))
    return hashlib.sha256(repr(sources).encode()).hexdigest()
