"""Programs, models and failures for tests: published from plain modules, no compile needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from dspy_reflex.optimize.modules import PROGRAMS
from dspy_reflex.optimize.publish import publish
from dspy_reflex.records.failure import Failure
from dspy_reflex.records.taxonomy import RootCause, Taxonomy
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.lm.model import PLAIN, Completion, Finish, Message, Sampling

HOUSE = Taxonomy(
    name="house",
    causes=(
        RootCause(
            name="leak",
            definition="Water comes out where it should not: a pipe drips, a tap runs, a ceiling is wet.",
            boundary="Not when the water cannot drain; that is blockage.",
            example="The kitchen tap drips all night and the cupboard under it is wet.",
            remedy="close the main valve before any work on a pipe; check it for drips twice",
        ),
        RootCause(
            name="blockage",
            definition="Something clogs a drain or gutter, so that nothing flows away: leaves, hair, grease.",
            example="Hair has clogged the shower drain and it no longer flows away.",
        ),
        RootCause(
            name="short_circuit",
            definition="The fuse blows or the breaker trips: a cable, socket or lamp has an electric fault.",
            example="The breaker trips as soon as the lamp is switched on.",
        ),
        RootCause(
            name="cold_room",
            definition="The heating does not warm the room: radiator, boiler or thermostat stay cold.",
            example="The radiator stays cold although the thermostat is at five.",
        ),
    ),
    guide="Ask about leak first.",
)
"""A taxonomy that no part of the package has ever seen."""

REPORTS: Mapping[str, tuple[str, ...]] = {
    "leak": (
        "The tap drips, the floor is wet.",
        "A pipe drips and the wall is wet.",
        "Water runs from the pipe, the ceiling is wet.",
        "The garden tap drips, water runs down the wall.",
        "There is a wet patch below the pipe.",
        "Water drips from the tap all night.",
    ),
    "blockage": (
        "The drain is clogged, nothing flows away.",
        "Leaves clogged the gutter, the rain flows over.",
        "Hair in the drain, nothing flows away in the tub.",
        "The gutter is full of leaves and clogged.",
        "Leaves in the drain, it is clogged.",
        "Nothing flows away in the gutter.",
    ),
    "short_circuit": (
        "The fuse blows when the lamp is on.",
        "The breaker trips, the cable is scorched.",
        "The socket sparks and the breaker trips.",
        "The lamp flickers, then the fuse blows.",
        "The breaker trips at the socket.",
        "With that lamp the fuse blows.",
    ),
    "cold_room": (
        "The radiator stays cold in the room.",
        "The boiler is off, no heating and a cold room.",
        "The thermostat is up, the heating stays cold.",
        "No heating, every radiator is cold.",
        "The boiler is on, the radiator stays cold.",
        "There is no heating in the room.",
    ),
}
"""What tenants of that house wrote, by what was the matter."""


def house(name: str, **known: Any) -> Taxonomy:
    """The same labels with nothing said about any of them: only demos and cues can tell them apart."""
    causes = tuple(RootCause(name=cause.name, definition="One of them.") for cause in HOUSE.causes)
    return Taxonomy(name=name, causes=causes, **known)


BARE = house("bare")


def failure(text: str = "HTTP 503 from the stock service", **fields: Any) -> Failure:
    """A failure that came out like that."""
    return Failure.model_validate({"id": "f1", "task": "look after the house", "actual_outcome": text} | fields)


def published(
    program: str = "root_cause",
    taxonomy: Taxonomy = HOUSE,
    *,
    demos: Sequence[Mapping[str, Any]] = (),
    instructions: str = "",
    **known: Any,
) -> Artifact:
    """The artefact of a module with these demos and, if given, other instructions."""
    module = module_of(program, taxonomy, demos=demos, instructions=instructions)
    return publish(module, taxonomy, **known)


def module_of(
    program: str, taxonomy: Taxonomy, *, demos: Sequence[Mapping[str, Any]] = (), instructions: str = ""
) -> Any:
    """A DSPy module, as an optimizer could have left it."""
    import dspy

    module: Any = PROGRAMS[program](taxonomy)
    module.predict.demos = [dspy.Example(**demo) for demo in demos]
    if instructions:
        module.predict.signature = module.predict.signature.with_instructions(instructions)
    return module


class ScriptedModel:
    """A model that says what it is told to, and remembers what it was asked."""

    def __init__(
        self,
        say: str | Callable[[list[Message]], str | Exception] = "",
        *,
        name: str = "offline/1",
        finish: Finish = "stop",
        tokens: tuple[int, int] = (0, 0),
    ) -> None:
        self.name = name
        self.asked: list[list[Message]] = []
        self._say = say if callable(say) else lambda _: say
        self._finish: Finish = finish
        self._tokens = tokens

    def complete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        self.asked.append(messages)
        said = self._say(messages)
        if isinstance(said, Exception):
            raise said
        return Completion(said, self._finish, *self._tokens)

    async def acomplete(self, messages: list[Message], sampling: Sampling = PLAIN) -> Completion:
        return self.complete(messages)


def chat_answer(**fields: str) -> str:
    """An answer in DSPy's chat format."""
    return "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name, text in fields.items()) + "\n\n[[ ## completed ## ]]"


def cause_answer(**fields: str) -> str:
    """A complete answer of the root-cause program, in the taxonomy of the house."""
    known = {"reasoning": "It drips.", "evidence": "", "root_cause": "leak", "second": "none", "confidence": "0.9"}
    return chat_answer(**known | fields)


def rule_answer(**fields: str) -> str:
    """A complete answer of the rule program."""
    return chat_answer(**{"component": "TOOLS", "rule": "Close the valve first.", "rationale": "Dry feet."} | fields)


CUSTOM = "<<CUSTOM-TYPE-START-IDENTIFIER>>", "<<CUSTOM-TYPE-END-IDENTIFIER>>"
PIECES = (
    *("[[ ## root_cause ## ]]", "[[ ## completed ## ]]", "[[ ## task ## ]]\n", "\n[[ ## context", " ## ]]", "[[", "##"),
    *(CUSTOM[0], CUSTOM[1], f"{CUSTOM[0]}[]{CUSTOM[1]}", f'{CUSTOM[0]}[{{"type": "text", "text": "x"}}]{CUSTOM[1]}'),
    *(
        "\n",
        "\r\n",
        "\t",
        " ",
        "\u2028",
        "\x85",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x00",
        "\u200b",
        "\u202e",
        "\ud800",
        "\udfff",
    ),
    *("{task}", "{", "}", "%s", "\\n", "\\", '"', "'", "Not supplied for this particular example.", "\u241e", "None"),
    *(
        "Respond with the corresponding output fields",
        "Respond with a JSON object",
        "your objective is:",
        "label",
        "503",
    ),
)
"""What a prompt's reader could take for the prompt's own structure, and other trouble."""

hostile_text = st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=12).map("".join)
any_text = hostile_text | st.text(st.characters(), max_size=60)
megabyte = st.sampled_from(PIECES).map(lambda piece: piece * (1_000_000 // len(piece)))
any_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=6,
)
raw_failures = st.fixed_dictionaries(
    {"task": any_text, "actual_outcome": any_text},
    optional={"expected_outcome": any_text | st.none(), "context": any_json, "id": any_text, "root_cause": any_text},
)
"""Failures as a program that never validates them could hand them in."""
