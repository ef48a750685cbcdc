"""Where a study lives."""

from __future__ import annotations

import builtins
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

from dspy_reflex.errors import ConfigError, MissingExtraError
from dspy_reflex.optimize.tune import storage as storage_module
from dspy_reflex.optimize.tune.storage import Watch, kind_of, open_storage
from tests import postgres
from tests.optimize.tune.studies import Study


@pytest.mark.parametrize("url", ["nonsense", "journal:", "mysql://me:secret@db/x", "redis://h", "", "://"])
def test_a_url_of_no_kind_of_ours_is_refused_with_what_would_do(url: str) -> None:
    """And without the password."""
    with pytest.raises(ConfigError, match="postgresql://USER:PASSWORD@HOST/DATABASE") as caught:
        open_storage(url)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("url", ["postgresql://me:secret@127.0.0.1:1/x", "sqlite:////proc/none/x.db"])
def test_a_database_that_cannot_be_opened_is_one_sentence(url: str) -> None:
    """With the address, and without the password."""
    with pytest.raises((ConfigError, OSError)) as caught:
        open_storage(url)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path: Path) -> None:
    """As a journal, and as a database."""
    notes = tmp_path / "notes"
    for text in ("Dear diary,\nno", '{"a": 1}\n', "[]\n"):
        notes.write_text(text, encoding="utf-8")
        for url in (f"journal:{notes}", f"sqlite:///{notes}"):
            with pytest.raises(ConfigError, match="notes") as caught:
                open_storage(url)
            assert "\n" not in str(caught.value)
        assert notes.read_text(encoding="utf-8") == text


def test_the_kind_of_a_storage_names_no_address() -> None:
    """It may stand in a report."""
    urls = ("journal:/a/b", "sqlite:///x", "postgresql://u:p@h/d", "postgresql+psycopg://u:p@h/d")
    assert [kind_of(url) for url in urls] == ["journal", "sqlite", "postgresql", "postgresql"]


def test_postgresql_without_its_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """As every missing extra."""
    real = builtins.__import__

    def without(name: str, *more: Any, **options: Any) -> Any:
        if name.startswith("psycopg"):
            raise ModuleNotFoundError(name)
        return real(name, *more, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"dspy-reflex\[postgresql\]"):
        open_storage("postgresql://u@127.0.0.1:1/d")


def test_folders_are_made(tmp_path: Path) -> None:
    """For both kinds of file."""
    open_storage(f"journal:{tmp_path / 'a' / 'b' / 'study.journal'}").close()
    open_storage(f"sqlite:///{tmp_path / 'c' / 'd' / 'study.db'}").close()
    assert (tmp_path / "a" / "b" / "study.journal").exists()
    assert (tmp_path / "c" / "d" / "study.db").exists()


def test_what_stands_still_is_noticed_and_what_moves_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock of our own; what was gone for a while starts anew."""
    now = [0.0]
    monkeypatch.setattr(storage_module.time, "monotonic", lambda: now[0])
    watch, found = Watch(10), list[list[int]]()
    for at, signs in (
        (0, {1: "a", 2: "a"}),
        (9, {1: "a", 2: "b"}),
        (11, {1: "a", 2: "b"}),
        (20, {2: "b"}),
        (21, {1: "a", 2: "b"}),
    ):
        now[0] = at
        found.append(watch.still(signs))
    assert found == [[], [], [1], [2], [2]]


@pytest.mark.parametrize("kind", ["journal", "sqlite", "postgresql"])
def test_anybody_s_optuna_reads_a_study_whole(
    kind: str, journal: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The dashboard, too: it opens the storage in just this way."""
    ours = journal if kind == "journal" else f"sqlite:///{tmp_path / 's.db'}"
    if kind == "postgresql":
        ours = postgres.database(request.getfixturevalue("postgresql"))
    study = Study(ours, 4)
    study.worker().work()
    with theirs(ours) as storage:
        read = optuna.load_study(study_name="a-study", storage=storage)
        assert read.metric_names == ["macro-F1", "tokens per call"]
        assert read.user_attrs == {"config": study.config}
        assert sorted(trial.number for trial in read.best_trials) == sorted(study.outcome.front)
        for trial, one in zip(read.trials, study.outcome.tried, strict=True):
            assert trial.values == [one.score, one.tokens_per_call]
            assert trial.params == one.choices
            assert {"worker", "run", "program", "calls", "interval"} <= trial.user_attrs.keys()


@contextmanager
def theirs(url: str) -> Generator[BaseStorage]:
    """A storage as Optuna has it."""
    if url.startswith("journal:"):
        yield JournalStorage(JournalFileBackend(url.partition(":")[2]))
        return
    database = RDBStorage(url.replace("postgresql:", "postgresql+psycopg:"))
    yield database
    database.engine.dispose()
