"""The artefact: trusted only after it was checked, and the same bytes for the same content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dspy_reflex.errors import ProgramError
from dspy_reflex.optimize.modules import PROGRAMS
from dspy_reflex.optimize.publish import adapter
from dspy_reflex.records.taxonomy import Taxonomy
from dspy_reflex.runtime.artifact import REQUIRED, Artifact, check, digest_of, dumps, read, seal
from dspy_reflex.runtime.calibration import Calibration
from dspy_reflex.runtime.inputs import cause_inputs
from dspy_reflex.runtime.render import render
from tests.runtime.programs import HOUSE, any_text, published

ANY_PROGRAM = published(demos=[{"task": "t", "root_cause": "leak"}])
BYTES = dumps(ANY_PROGRAM).encode()
SCORES = {"metric": "macro-F1", "value": 0.5, "interval": [0.4, 0.625], "n": 48, "on": "val"}


def content_of(artifact: Artifact, **changed: Any) -> dict[str, Any]:
    """What a file says, with some of it changed, before it is sealed."""
    unsealed = {key: value for key, value in artifact.data.items() if key not in ("digest", "format", "format_version")}
    return unsealed | changed


def written(folder: Path, content: bytes | str) -> Path:
    """A program file with this content."""
    path = folder / "program.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refused(path: Path, reason: str) -> None:
    """Reading this file fails with one sentence that names it and says what to do."""
    with pytest.raises(ProgramError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert reason in message
    assert "\n" not in message
    assert ";" in message


def test_what_is_written_is_read_back(compiled: Mapping[str, Artifact], tmp_path: Path) -> None:
    for artifact in compiled.values():
        path = written(tmp_path, dumps(artifact))
        assert read(path) == artifact
        assert dumps(read(path)).encode() == path.read_bytes()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, len(BYTES) - 1), other=st.integers(1, 255))
def test_a_flipped_byte_is_noticed(tmp_path: Path, at: int, other: int) -> None:
    """Unless it stands between the values, and changes nothing that anyone reads."""
    flipped = bytearray(BYTES)
    flipped[at] ^= other
    try:
        found = read(written(tmp_path, bytes(flipped)))
    except ProgramError as error:
        assert "\n" not in str(error).replace("\\n", "")  # noqa: PT017 - either is right, silence is not
    else:
        assert found.data == ANY_PROGRAM.data


@pytest.mark.parametrize("key", [*REQUIRED, "digest", "format", "format_version"])
def test_a_missing_key_is_refused(tmp_path: Path, key: str) -> None:
    rest = {name: value for name, value in ANY_PROGRAM.data.items() if name != key}
    refused(
        written(tmp_path, json.dumps(rest)),
        {"format": "not a dspy-reflex program", "format_version": "None"}.get(key, key),
    )


@pytest.mark.parametrize("key", [key for key in REQUIRED if key != "outputs"])
def test_a_changed_value_is_refused(tmp_path: Path, key: str) -> None:
    changed = dict(ANY_PROGRAM.data) | {key: "changed"}
    refused(written(tmp_path, json.dumps(changed)), "compile it again")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "cannot be read as a program"),
        ("{", "cannot be read as a program"),
        (b"\xff\xfe{}", "cannot be read as a program"),
        ("null", "not a dspy-reflex program"),
        ("[]", "not a dspy-reflex program"),
        ("{}", "not a dspy-reflex program"),
        ('{"format": "dspy-reflex/program", "format_version": 2}', "program format 2 is not 1"),
        ('{"predict": {"demos": []}}', "not a dspy-reflex program"),
        ("[" * 100_000, "cannot be read as a program"),
    ],
)
def test_what_is_no_program_is_refused(tmp_path: Path, content: str | bytes, reason: str) -> None:
    refused(written(tmp_path, content), reason)


def test_a_lone_surrogate_is_refused(tmp_path: Path) -> None:
    """JSON may spell one; UTF-8, over which the digest goes, may not."""
    refused(written(tmp_path, json.dumps(dict(ANY_PROGRAM.data) | {"tail": "\ud800"})), "")


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    refused(tmp_path / "none.json", "no such program file")
    refused(tmp_path, "cannot be read as a program")


def test_another_label_set_is_refused() -> None:
    other = content_of(ANY_PROGRAM, labels=list(reversed(HOUSE.labels)))
    with pytest.raises(ProgramError, match="the prompt's labels are not the taxonomy's"):
        seal(other)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("outputs", None), ("outputs", [{}]), ("outputs", ["root_cause"]), ("inputs", None), ("inputs", [{}])),
        *(("labels", None), ("messages", "system"), ("messages", [3]), ("tail", None), ("program", None)),
        *(("calibration", []), ("calibration", {}), ("calibration", {"slope": -1, "shift": 0, "n": 72})),
    ],
)
def test_a_file_of_another_shape_is_refused_although_its_digest_is_right(key: str, value: Any) -> None:
    """The digest is no secret: whoever edits a file by hand can compute it."""
    data = dict(ANY_PROGRAM.data) | {key: value}
    data["digest"] = digest_of(data)
    with pytest.raises(ProgramError):
        check(data, "file")


def test_the_version_comes_from_the_content_alone() -> None:
    content = content_of(ANY_PROGRAM)
    again = seal(dict(reversed(content.items())))
    assert again.version == ANY_PROGRAM.version == ANY_PROGRAM.data["digest"][:12]
    assert dumps(again) == dumps(ANY_PROGRAM)
    assert seal(content | {"seed": 7}).version != again.version


@given(st.dictionaries(any_text.filter(lambda text: text.isprintable()), st.integers() | st.booleans() | st.none()))
def test_no_value_can_change_without_the_digest(more: dict[str, Any]) -> None:
    data = dict(ANY_PROGRAM.data)
    changed = {**data, "optimizer": more}
    assert (digest_of(changed) == data["digest"]) == (more == data["optimizer"])


def test_an_artefact_says_what_it_is_worth() -> None:
    assert ANY_PROGRAM.score == "unmeasured"
    assert seal(content_of(ANY_PROGRAM, scores=SCORES)).score == "val macro-F1 0.50 [0.40, 0.62], n=48"


def test_an_artefact_says_what_it_is(cause: Artifact) -> None:
    assert cause.name == f"root_cause@{cause.version}"
    assert cause.model == "offline/1"
    assert cause.inputs == ("task", "expected_outcome", "actual_outcome", "context")
    assert cause.labels == tuple(label["name"] for label in cause.data["taxonomy"]["causes"])
    assert cause.threshold is not None


def test_an_artefact_may_carry_a_calibration() -> None:
    """Older ones have no such key."""
    curve = Calibration(slope=0.8, shift=-0.4, n=72)
    assert ANY_PROGRAM.calibration is None
    assert seal(content_of(ANY_PROGRAM, calibration=None)).calibration is None
    assert seal(content_of(ANY_PROGRAM, calibration=curve.to_json())).calibration == curve


def test_every_demo_names_the_row_it_came_from(compiled: Mapping[str, Artifact]) -> None:
    for artifact in compiled.values():
        assert all(demo["id"] for demo in artifact.data["demos"])
    assert len(compiled["cause by demos"].data["demos"]) == 16


def test_worked_out_demos_stay_marked_as_such() -> None:
    """Optimizers treat them differently from labelled ones."""
    program = published(demos=[{"task": "t", "root_cause": "leak"}, {"task": "u", "augmented": True}])
    assert [demo["augmented"] for demo in program.to_dspy()["predict"]["demos"]] == [False, True]


def test_a_module_loads_it_from_a_file_and_sends_the_same(compiled: Mapping[str, Artifact], tmp_path: Path) -> None:
    """`to_dspy`, as JSON in a file, is what `dspy.Module.load` reads."""
    artifact = compiled["cause"]
    path = tmp_path / "state.json"
    path.write_text(json.dumps(artifact.to_dspy()), encoding="utf-8")
    module = PROGRAMS["root_cause"](Taxonomy.model_validate(artifact.data["taxonomy"]))
    module.load(str(path))
    values = cause_inputs({"task": "t", "actual_outcome": "a"})
    sent = adapter().format(module.predict.signature, module.predict.demos, dict(values))
    assert sent == render(artifact, values)
