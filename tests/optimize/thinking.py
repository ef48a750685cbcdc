"""A loopback server whose answers depend on the question; `wise` answers as the offline learner does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager

import pytest

from dspy_reflex.runtime.lm import offline
from dspy_reflex.runtime.lm.connect import PROVIDERS
from tests.optimize.compiles import rows_by_cause
from tests.runtime.lm.loopback import KEY, Loopback, Reply, Request, answer, running, text_of

Think = Callable[[Request], Reply]
WEAK, STRONG = "openai/gpt-4o-mini", "hosted_vllm/strong"
"""Two models that `point` leads to two servers."""


class Thinking(Loopback):
    """A server that thinks of a reply instead of reading it from a script."""

    def __init__(self, think: Think) -> None:
        super().__init__()
        self._think = think

    def next_reply(self, request: Request) -> Reply:
        """Record a request and answer it."""
        self.requests.append(request)
        return self._think(request)


def texts(request: Request) -> list[dict[str, str]]:
    """A request's messages as role and text; Anthropic's system text is the first of them."""
    system = request.body.get("system")
    told = [{"role": "system", "content": system}] if system else []
    return [
        {"role": message["role"], "content": text_of(message["content"])}
        for message in [*told, *request.body["messages"]]
    ]


def everything(request: Request) -> str:
    """All that was sent, as one text."""
    return "\n".join(message["content"] for message in texts(request))


def wise(request: Request) -> Reply:
    """What the offline learner would say."""
    return answer(offline.answer(texts(request)))


def says(cause: str) -> Reply:
    """A well-formed answer of the root-cause program for the six causes."""
    fields = {"reasoning": "So.", "evidence": "", "root_cause": cause, "second": "none", "confidence": "0.7"}
    return answer(
        "".join(f"[[ ## {name} ## ]]\n{value}\n\n" for name, value in fields.items()) + "[[ ## completed ## ]]"
    )


def knows(request: Request) -> Reply:
    """The cause that people gave the failure asked about."""
    asked = texts(request)[-1]["content"]
    gold = (cause for cause, rows in rows_by_cause().items() for row in rows if row["task"].strip()[:80] in asked)
    return says(next(gold))


def learns(request: Request, sign: str = "[[ ## root_cause ## ]]") -> Reply:
    """A model that is lost without a sign in what it was told before the question, by default a demo's answer.

    With it it is always right. Other questions, those of a prompt model, it answers as the offline learner does.
    """
    system, *demos, _ = (message["content"] for message in texts(request))
    if "`root_cause` (Literal" not in system:
        return wise(request)
    return knows(request) if any(sign in demo for demo in demos) else says("tool_failure")


def every(number: int, bad: Reply, otherwise: Think = wise) -> Think:
    """A bad reply to every so-manyth request, counted from the first."""
    lock, count = threading.Lock(), iter(range(1_000_000))

    def think(request: Request) -> Reply:
        with lock:
            turn = next(count)
        return bad if turn % number == 0 else otherwise(request)

    return think


@contextmanager
def pointed_at(monkeypatch: pytest.MonkeyPatch) -> Generator[Callable[..., Thinking]]:
    """A function that starts a server that thinks, and points a model's provider at it."""
    with ExitStack() as stack:

        def start(think: Think, model: str = WEAK) -> Thinking:
            server = stack.enter_context(running(Thinking(think)))
            provider = PROVIDERS[model.partition("/")[0]]
            monkeypatch.setenv(provider.url_variables[0], server.url)
            monkeypatch.setenv(provider.key_variable, KEY)
            return server

        yield start
