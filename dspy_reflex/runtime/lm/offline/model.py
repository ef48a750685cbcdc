"""Which question is asked, and which part of the learner answers it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from dspy_reflex.runtime.lm.model import PLAIN, Completion, Message, Sampling
from dspy_reflex.runtime.lm.offline.classify import Classifier, Ranking
from dspy_reflex.runtime.lm.offline.prompt import Fields, Task, read_case, read_task, write
from dspy_reflex.runtime.lm.offline.prompt_model import infer, instruct, observe
from dspy_reflex.runtime.lm.offline.quotes import quotes
from dspy_reflex.runtime.lm.offline.reflect import advise, reflect
from dspy_reflex.runtime.lm.offline.rules import RuleWriter

MODEL = "offline/1"
"""Name and version: the number rises when an answer to an old prompt would change."""
CHARS_PER_TOKEN = 4
"""What a token is taken to be, so that costs can be compared with those of language models."""
KEPT_PROMPTS = 16


class OfflineModel:
    """The offline learner behind the runtime's model interface."""

    name = MODEL

    def complete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """Answer one chat. Never fails, never waits."""
        text = answer(messages, sampling.seed or 0)
        asked = sum(len(message["content"]) for message in messages)
        return Completion(text, "stop", asked // CHARS_PER_TOKEN, len(text) // CHARS_PER_TOKEN)

    async def acomplete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        """The same."""
        return self.complete(messages, sampling)


def answer(messages: Sequence[Mapping[str, str]], seed: int = 0) -> str:
    """The answer to a chat: a pure function of the messages and, for instructions, of the seed."""
    reader = _reader(tuple((message["role"], message["content"]) for message in messages[:-1]))
    return write(reader.task, reader.answer(read_case(messages), seed))


class _Reader:
    """A task, and what was learned from its prompt so far."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._choice = next(iter(task.choices), "")
        self._classifier = Classifier(task, self._choice) if self._choice and "rule" not in task.outputs else None
        self._writer = RuleWriter(task, "rule", self._choice) if "rule" in task.outputs else None

    def answer(self, case: Fields, seed: int) -> dict[str, str]:
        if self._writer:
            rule, place, rationale = self._writer.write(case)
            known = {"rule": rule, self._choice: place, "rationale": rationale}
            return {name: known.get(name, rationale) for name in self.task.outputs}
        if self._classifier:
            return self._classified(case, self._classifier.rank(case))
        return {name: self._told(name, case, seed) for name in self.task.outputs}

    def _classified(self, case: Fields, ranking: Ranking) -> dict[str, str]:
        return {name: self._field(name, kind, case, ranking) for name, kind in self.task.outputs.items()}

    def _field(self, name: str, kind: str, case: Fields, ranking: Ranking) -> str:
        (best, share), *others = ranking.shares
        if name == self._choice:
            return best
        if name in self.task.choices:
            allowed = self.task.choices[name]
            return next((label for label, _ in others if label in allowed), allowed[-1])
        if kind in ("float", "int"):
            return f"{share:.3f}"
        if name == "evidence":
            return "\n".join(quotes(case, ranking.cues))
        cues = ", ".join(ranking.cues) or "the definitions alone"
        return f"{best} ({share:.0%}), by: {cues}."

    def _told(self, name: str, case: Fields, seed: int) -> str:
        match name:
            case "observations":
                return observe(case)
            case "summary":
                return case.get("observations", "")
            case "proposed_instruction":
                return instruct(case, seed)
            case "natural_language_rules":
                return infer(case, seed)
            case "new_instruction":
                return reflect(case)
            case "module_advice":
                return advise(case)
            case _:
                return "A program that answers from definitions, cues and examples."


@lru_cache(maxsize=KEPT_PROMPTS)
def _reader(prefix: tuple[tuple[str, str], ...]) -> _Reader:
    messages = [{"role": role, "content": content} for role, content in prefix]
    return _Reader(read_task([*messages, {"role": "user", "content": ""}]))
