"""What was seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.errors import ConfigError
from dspy_reflex.mechanism.literals import folded
from dspy_reflex.mechanism.symptom import MAX_CHARS, OTHER, Symptom, default_table, load_table, symptom_of

CLOSED_LIST = {
    "timeout",
    "rate_limit",
    "auth",
    "empty_response",
    "bad_argument",
    "schema_mismatch",
    "stale_data",
    "loop",
    "wrong_answer",
    "unsafe_action",
    "other",
}
EXAMPLES = [(entry.name, line) for entry in default_table() for line in entry.examples]


def test_the_built_in_table_is_the_closed_list_and_ends_with_other() -> None:
    names = [entry.name for entry in default_table()]
    assert set(names) == CLOSED_LIST
    assert len(names) == len(CLOSED_LIST)
    assert names[-1] == OTHER


@pytest.mark.parametrize(("name", "line"), EXAMPLES)
def test_every_example_of_the_table_gets_its_symptom(name: str, line: str) -> None:
    assert symptom_of(line) == name


@pytest.mark.parametrize("entry", default_table(), ids=lambda entry: entry.name)
def test_every_entry_is_documented(entry: Symptom) -> None:
    """A meaning of one line, and two or three examples: no symptom is out of reach."""
    assert entry.meaning
    assert "\n" not in entry.meaning
    assert 2 <= len(entry.examples) <= 3


@pytest.mark.parametrize(
    "line",
    [
        "Order 40412 was shipped",
        "Invoice 1429 covers 503 items and 401 boxes",
        "The agent got 500 dollars back",
        "It took too long to explain",
        "requests.get(url, timeout=10)",
        '{"timeout": 30, "retries": 2}',
        "setTimeout(run)",
        "The unsuccessful product page was reviewed",
        "response in 500 ms",
        "The author authored an authority",
        "Looped cables arrived",
    ],
)
def test_a_piece_of_a_word_or_a_number_without_context_is_no_symptom(line: str) -> None:
    """Substring rules see a 404 in 40412 and a failure in `unsuccessful`."""
    assert symptom_of(line) == OTHER


@pytest.mark.parametrize(
    ("line", "symptom"),
    [
        ("HTTP/1.1 503 Service Unavailable", "timeout"),
        ("status_code=500", "timeout"),
        ("<Response [429]>", "rate_limit"),
        ("The API returned 404.", "bad_argument"),
        ('{"code": 401}', "auth"),
        ("User 14290 not found", "bad_argument"),
        ("AssertionError", "wrong_answer"),
        ("", "empty_response"),
        ("  \n", "empty_response"),
        ("[]", "empty_response"),
    ],
)
def test_numbers_in_context_and_bare_errors(line: str, symptom: str) -> None:
    assert symptom_of(line) == symptom


def test_the_first_of_the_table_wins() -> None:
    assert symptom_of("HTTP 429 Too Many Requests, then the job timed out") == "rate_limit"
    assert symptom_of("deleted all tickets without asking; request timed out") == "unsafe_action"


def test_the_beginning_and_the_end_of_a_long_text_are_seen_but_not_its_middle() -> None:
    filler = "word " * MAX_CHARS
    assert symptom_of(f"request timed out {filler}") == "timeout"
    assert symptom_of(f"{filler} request timed out") == "timeout"
    assert symptom_of(f"{filler} request timed out {filler}") == OTHER


@pytest.mark.parametrize("piece", ["a", " ", "deleted ", "no a ", "same ", "timeout", "error 4", "expected ", "'\"[{"])
def test_megabytes_are_searched_at_once(piece: str) -> None:
    symptom_of(piece * (1_000_000 // len(piece)))


@pytest.mark.parametrize("piece", [" ", "a", "deleted ", "no a ", "same ", "without ", "code is ", "expected "])
def test_no_pattern_is_worse_than_linear(piece: str) -> None:
    """The whole text, past the window; a quadratic pattern would not come back."""
    text = f"x{piece * (200_000 // len(piece))}x"
    assert sum(entry.seen_in(text, folded(text)) for entry in default_table()) <= 1


@given(st.text())
def test_every_text_has_a_symptom_of_the_list(text: str) -> None:
    assert symptom_of(text) in CLOSED_LIST


def own_table(folder: Path, content: str) -> Path:
    """A user's symptom file."""
    path = folder / "own.toml"
    path.write_text(content, encoding="utf-8")
    return path


def test_entries_of_a_users_file_go_first(tmp_path: Path) -> None:
    path = own_table(
        tmp_path,
        "[[symptom]]\nname = 'paper_jam'\nmeaning = 'The printer.'\npatterns = ['\\bpaper jam\\b']\n"
        "[[symptom]]\nname = 'timeout'\nmeaning = 'Ours.'\npatterns = ['\\bslowpoke\\b']\n",
    )
    table = load_table(path)
    assert symptom_of("Paper jam; request timed out", table) == "paper_jam"
    assert symptom_of("slowpoke", table) == "timeout"
    assert symptom_of("HTTP 429", table) == "rate_limit"
    assert symptom_of("Paper jam", default_table()) == OTHER


GOOD = "[[symptom]]\nname = 'x'\nmeaning = 'm'\npatterns = "


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[[symptom]", "not valid TOML"),
        ("", "symptom: Field required"),
        ("symptom = []", "symptom: Tuple should have at least 1 item"),
        ("[[symptom]]\nname = 'x'", "meaning: Field required"),
        (GOOD + "['(']", "'(' is not a regular expression"),
        (GOOD + "[3]", "patterns"),
        (GOOD + "'timeout'", "patterns"),
        (GOOD + "[]", "'x' has no patterns"),
        (GOOD + "['y']\npattern = ['z']", "pattern: Extra inputs"),
        ("[[symptom]]\nname = 'Not a name'\nmeaning = 'm'\npatterns = ['y']", "name: String should match"),
    ],
)
def test_a_bad_file_is_refused_with_file_and_reason(tmp_path: Path, content: str, reason: str) -> None:
    path = own_table(tmp_path, content)
    with pytest.raises(ConfigError) as caught:
        load_table(path)
    assert str(path) in str(caught.value)
    assert reason in str(caught.value)


def test_a_missing_or_binary_file_is_refused(tmp_path: Path) -> None:
    missing = tmp_path / "none.toml"
    with pytest.raises(ConfigError, match=r"none\.toml: cannot be read"):
        load_table(str(missing))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_table(tmp_path / "binary.toml")
