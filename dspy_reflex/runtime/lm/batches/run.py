"""Chats in, answers out, through batches: start it again, and it goes on where it was.

Whatever is about to happen is written down before it happens. So a process that is killed at any moment leaves nothing
behind that costs money twice:

- Before a submission the file says so, with the key that the ids of its requests begin with; after it, it says which
  batch that was. Killed in between, the next start looks through the workspace's batches of that time and size, waits
  until they end, and knows its own by the ids in the results. One risk is left: a submission that reaches the
  provider's list only after that look is paid for twice.
- Results that were fetched are read from the folder from then on, even after the provider has dropped them.

Failed and expired requests cost nothing; they are asked once more in the same sitting, and again in the next one. What
somebody canceled is asked again only by a sitting that finds nothing under way.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dspy_reflex.errors import ModelUnavailableError
from dspy_reflex.runtime.lm.batches.api import ClaudeBatches, Status, Unanswered, in_batches
from dspy_reflex.runtime.lm.batches.state import Batch, State
from dspy_reflex.runtime.lm.claude import Claude
from dspy_reflex.runtime.lm.model import Completion, Message

FIRST_POLL_S = 1.0
LONGEST_POLL_S = 60.0
POLL_GROWTH = 1.5
PATIENCE = 10
"""How many polls in a row may get no answer, each after all its attempts, while a batch is waited for."""
LOOK_AFTER_S = 5.0
"""How long after a submission without an answer to look whether it arrived."""
CLOCKS = timedelta(hours=1)
"""How far this machine's clock and the provider's may be apart."""

Chats = Sequence[list[Message]]
Tell = Callable[[str], None]


def complete_all(model: Claude, chats: Chats, state: Path, tell: Tell) -> list[Completion | None]:
    """Answer chats in batches, in their order; None where there is no answer after two attempts.

    Args:
        model: Whose batches they are.
        chats: As `Claude.complete` takes them.
        state: The file to go on from, as `RUN/batch.json`; results are put beside it.
        tell: Told how far the batches are.

    Raises:
        RunError: The file is of other chats, or damaged, or another process is at it.
        ModelError: The model cannot be used, or was out of reach for long; the next call goes on.
    """
    with State(state, digest_of(model, chats)) as kept:
        run = BatchRun(model, chats, kept, tell)
        run.finish()
        return [one if isinstance(one, Completion) else None for one in run.answers()]


def digest_of(model: Claude, chats: Chats) -> str:
    """SHA-256 of what is asked, in hex."""
    digest = hashlib.sha256(json.dumps([model.name, model.max_tokens]).encode())
    for chat in chats:
        digest.update(json.dumps(chat).encode())
    return digest.hexdigest()


class BatchRun:
    """Chats, and the batches that they are in."""

    def __init__(self, model: Claude, chats: Chats, state: State, tell: Tell) -> None:
        """Take a state that is locked and read; see `complete_all`."""
        self._model, self._chats, self._state, self._tell = model, chats, state, tell
        self._api = ClaudeBatches(model)

    def finish(self) -> None:
        """Finish what was begun; then ask what has no answer, and once more what failed; see `complete_all`."""
        idle = all(map(self._state.has, self._state.batches))
        self._settle()
        stopped = () if idle else ("canceled",)  # whoever canceled it just now meant it
        self._ask(self._open("invalid", *stopped))
        self._ask(self._open("invalid", "canceled"))

    def answers(self) -> list[Completion | Unanswered | None]:
        """What is known of each chat, in order; None if nothing is."""
        found: list[Completion | Unanswered | None] = [None] * len(self._chats)
        for batch in filter(self._state.has, self._state.batches):
            for place, answer in self._state.results(batch).items():
                if not isinstance(found[place], Completion):
                    found[place] = answer
        return found

    def to_pay(self) -> list[int]:
        """The places of the chats that are still to be sent."""
        sent = [each for each in self._state.batches if each.sent_at and not self._state.has(each)]
        under_way = {place for each in sent for place in each.places}
        return [place for place in self._open("invalid") if place not in under_way]

    def _open(self, *given_up: str) -> list[int]:
        """The places of the chats without an answer, but for those with one of these reasons."""
        found = enumerate(self.answers())
        return [at for at, one in found if one is None or (isinstance(one, Unanswered) and one.reason not in given_up)]

    def _ask(self, places: list[int]) -> None:
        if places:
            chosen = in_batches(self._model.request(self._chats[place]) for place in places)
            self._state.plan(Batch(tuple(places[number] for number in numbers)) for numbers in chosen)
            self._settle()

    def _settle(self) -> None:
        """Submit what is planned, and fetch the results of all batches."""
        for number, batch in enumerate(self._state.batches):
            if not batch.id:
                self._hand_in(number)
        while self._fetch_next():
            pass

    def _hand_in(self, number: int) -> None:
        """Submit a batch; if there is no room for it, wait until another one has ended."""
        attempts = self._model.attempts
        while True:
            try:
                return self._submit(number)
            except ModelUnavailableError as error:
                if self._fetch_next():
                    continue
                attempts -= 1
                if not attempts:
                    raise
                self._tell(str(error))
                time.sleep(LOOK_AFTER_S)

    def _submit(self, number: int) -> None:
        batch = self._state.batches[number]
        found = self._lost(batch) if batch.sent_at else ""
        if not found:
            batch = replace(batch, sent_at=batch.sent_at or datetime.now(UTC).isoformat())
            self._state.put(number, batch)
            found = self._api.submit({batch.custom_id(place): self._chats[place] for place in batch.places})
        self._state.put(number, replace(batch, id=found))

    def _lost(self, batch: Batch) -> str:
        """The id of the batch that a submission without an answer became; empty if it became none."""
        known = {each.id for each in self._state.batches}
        for status in self._api.since(datetime.fromisoformat(batch.sent_at) - CLOCKS):
            if status.id not in known and status.requests == len(batch.places):
                self._tell(f"{status.id} may be the submission that got no answer: its results will tell")
                self._wait(status.id)
                if batch.custom_id(batch.places[0]) in self._api.results(status.id):
                    return status.id
        return ""

    def _fetch_next(self) -> bool:
        """Wait for the first batch whose results are not here, and fetch them; False if there is none."""
        for batch in self._state.batches:
            if batch.id and not self._state.has(batch):
                self._wait(batch.id)
                self._state.keep(batch, self._api.results(batch.id))
                return True
        return False

    def _wait(self, batch_id: str) -> None:
        """Wait until a batch has ended, asking ever less often."""
        pause_s, seen = FIRST_POLL_S, ""
        while True:
            status = self._poll(batch_id)
            if str(status) != seen:
                seen = str(status)
                self._tell(f"{batch_id}: {seen}")
            if status.ended:
                return
            time.sleep(pause_s)
            pause_s = min(pause_s * POLL_GROWTH, LONGEST_POLL_S)

    def _poll(self, batch_id: str) -> Status:
        """Ask how far a batch is; an outage is no reason to stop waiting."""
        for _ in range(PATIENCE):
            try:
                return self._api.poll(batch_id)
            except ModelUnavailableError as error:
                self._tell(str(error))
                time.sleep(LONGEST_POLL_S)
        return self._api.poll(batch_id)
