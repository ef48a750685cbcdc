"""Where programs are looked for, and which one is current."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dspy_reflex.errors import ProgramError
from dspy_reflex.files import write_atomic
from dspy_reflex.records.taxonomy import Taxonomy
from dspy_reflex.runtime import library
from dspy_reflex.runtime.artifact import ANY_MODEL, Artifact, dumps
from tests.runtime.programs import HOUSE, published

MODEL = "offline/1"


def one(seed: int, model: str = MODEL, program: str = "root_cause") -> Artifact:
    """A program that differs from the others by its seed."""
    return published(program, model=model, seed=seed)


def kept(folder: Path, *artifacts: Artifact) -> Path:
    """A library of these programs, each made current as it came."""
    for artifact in artifacts:
        write_atomic(folder / artifact.program / f"{artifact.version}.json", dumps(artifact).encode())
        library.set_current(folder, artifact)
    return folder


@pytest.fixture
def places(in_empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path, Path]:
    """The three libraries, not made yet: here, at home, in the package."""
    monkeypatch.setenv("REFLEX_HOME", str(in_empty_folder / "home"))
    monkeypatch.setattr(library, "bundled", lambda what: in_empty_folder / "bundled" / what)
    return Path("programs"), in_empty_folder / "home" / "programs", in_empty_folder / "bundled" / "programs"


def test_the_nearest_library_wins(places: tuple[Path, Path, Path]) -> None:
    for seed, place in reversed(list(enumerate(places))):
        kept(place, one(seed))
        assert library.find("root_cause", MODEL) == one(seed)
    assert library.libraries() == list(places)


def test_only_folders_that_exist_are_looked_through(places: tuple[Path, Path, Path]) -> None:
    assert library.libraries() == []
    with pytest.raises(ProgramError, match="there is no root_cause program for offline/1 in no folder; make one"):
        library.find("root_cause", MODEL)
    kept(places[1], one(1))
    assert library.libraries() == [places[1]]


def test_a_folder_is_looked_through_once(places: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """In a checkout, `./programs` is also what the package brings."""
    kept(places[2], one(1))
    monkeypatch.chdir(places[2].parent)
    assert library.libraries() == [Path("programs")]
    assert len(list(library.everything())) == 1


def test_a_model_that_nothing_was_compiled_for_gets_the_guide(places: tuple[Path, Path, Path]) -> None:
    guide, compiled = one(1, ANY_MODEL), one(2)
    kept(places[2], guide, compiled)
    assert library.find("root_cause", "anthropic/claude") == guide
    assert library.find("root_cause", MODEL) == compiled


def test_a_program_compiled_for_the_model_wins_over_a_nearer_guide(places: tuple[Path, Path, Path]) -> None:
    kept(places[0], one(1, ANY_MODEL))
    kept(places[2], one(2))
    assert library.find("root_cause", MODEL) == one(2)


def test_without_a_guide_another_models_program_is_not_taken(places: tuple[Path, Path, Path]) -> None:
    kept(places[0], one(1))
    with pytest.raises(ProgramError, match="no root_cause program for openai/x in programs"):
        library.find("root_cause", "openai/x")


def test_programs_do_not_stand_in_for_each_other(places: tuple[Path, Path, Path]) -> None:
    kept(places[0], one(1, program="rule"))
    with pytest.raises(ProgramError, match="no root_cause program"):
        library.find("root_cause", MODEL)


def test_the_last_one_made_current_is_current(tmp_path: Path) -> None:
    kept(tmp_path, one(1), one(2), one(3, "openai/x"))
    assert library.current(tmp_path, "root_cause") == {MODEL: one(2).version, "openai/x": one(3, "openai/x").version}
    assert library.find("root_cause", MODEL, [tmp_path]) == one(2)


def test_making_one_current_twice_writes_the_same_bytes(tmp_path: Path) -> None:
    kept(tmp_path, one(3, "openai/x"), one(1))
    path = tmp_path / "root_cause" / library.CURRENT
    before = path.read_bytes()
    kept(tmp_path, one(1), one(3, "openai/x"))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "null", '"offline/1"', '{"offline/1": 3}', '{"offline/1": null}', "\x80", "[" * 100_000]
)
def test_a_damaged_current_file_is_refused_and_says_what_to_do(tmp_path: Path, content: str) -> None:
    kept(tmp_path, one(1))
    path = tmp_path / "root_cause" / library.CURRENT
    path.write_bytes(content.encode("latin-1"))
    for use in (lambda: library.find("root_cause", MODEL, [tmp_path]), lambda: library.set_current(tmp_path, one(1))):
        with pytest.raises(ProgramError) as caught:
            use()
        assert str(caught.value).startswith(str(path))
        assert "delete it and compile again" in str(caught.value)
    assert path.read_bytes() == content.encode("latin-1")


def test_a_current_program_that_is_gone_or_damaged_is_refused_by_name(tmp_path: Path) -> None:
    path = kept(tmp_path, one(1)) / "root_cause" / f"{one(1).version}.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"seed": 1', '"seed": 2'), encoding="utf-8")
    with pytest.raises(ProgramError, match=f"{path}: the program was changed"):
        library.find("root_cause", MODEL, [tmp_path])
    path.unlink()
    with pytest.raises(ProgramError, match=f"{path}: no such program file"):
        library.find("root_cause", MODEL, [tmp_path])


def test_everything_is_listed_in_order_without_the_notes_on_what_is_current(tmp_path: Path) -> None:
    kept(tmp_path / "a", one(1), one(2), one(3, program="rule"))
    kept(tmp_path / "b", one(4))
    found = list(library.everything([tmp_path / "a", tmp_path / "b", tmp_path / "none"]))
    assert found == sorted(found)
    assert {path.stem for path in found} == {
        one(1).version,
        one(2).version,
        one(3, program="rule").version,
        one(4).version,
    }


def test_home_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REFLEX_HOME", str(tmp_path))
    assert library.home() == tmp_path
    monkeypatch.setenv("REFLEX_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert library.home() == tmp_path / ".dspy-reflex"


@pytest.mark.parametrize("what", ["programs", "datasets"])
def test_a_checkout_brings_what_the_wheel_would(what: str) -> None:
    assert library.bundled(what).is_dir()


def test_an_interrupted_change_leaves_the_old_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(tmp_path, one(1))

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        library.set_current(tmp_path, one(2))
    path = tmp_path / "root_cause" / library.CURRENT
    assert json.loads(path.read_text(encoding="utf-8")) == {MODEL: one(1).version}


def test_a_program_with_other_labels_is_passed_over_where_labels_are_asked_for(tmp_path: Path) -> None:
    """A rule program goes with a root-cause program of its own label set only."""
    near, far = tmp_path / "near", tmp_path / "far"
    other, wanted = one(1), published(taxonomy=Taxonomy(name="two", causes=HOUSE.causes[:2]), model=MODEL)
    kept(near, other)
    kept(far, wanted)
    assert library.find("root_cause", MODEL, [near, far]).version == other.version
    assert library.find("root_cause", MODEL, [near, far], wanted.labels).version == wanted.version
    with pytest.raises(ProgramError, match="there is no root_cause program"):
        library.find("root_cause", MODEL, [near], ["nobody"])
