"""A failing agent is never made to fail more: `log` returns whatever the disk, the store, the settings or a context are like."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from dspy_reflex.api import Reflex
from dspy_reflex.stages.recording.log import NOTE, SEVERITIES
from tests.stages.recording.test_log import Odd

ROOT = Path(__file__).parents[1]
FAILED = ("veya", "Send the briefing", "By 7:00", "429, no retry")


def fresh(code: str, folder: Path, **env: str) -> Any:
    """What a fresh process prints as JSON, run in a folder."""
    path = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=path | env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


LOG = """
import json, sys
from dspy_reflex.api import Reflex
reflex = Reflex(*sys.argv[1:])
ids = [reflex.log("veya", "t", "e", "a", severity="high"), reflex.succeeded("veya")]
print(json.dumps({"ids": ids, "lost": reflex.recorder.lost, "why": reflex.recorder.why, "imported": sorted(sys.modules)}))
"""


def test_what_is_logged_is_there_for_the_next_who_looks(tmp_path: Path) -> None:
    with Reflex(tmp_path) as agent:
        ids = [
            agent.log(*FAILED, severity="high", context={"k": 1}, parent_agent_id="lead"),
            agent.succeeded("veya", "t"),
        ]
        with Reflex(tmp_path) as other:
            (found,) = other.failures()
            assert found.failure.id == ids[0]
            assert (found.failure.severity, found.failure.parent_agent_id) == ("high", "lead")
            assert other.status().good == 1


def test_logging_imports_neither_pydantic_nor_sqlalchemy_and_reads_no_settings(tmp_path: Path) -> None:
    """A settings file that nobody can read changes nothing."""
    (tmp_path / "reflex.toml").write_text("[[[ nonsense")
    told = fresh(LOG, tmp_path, REFLEX_HOME=str(tmp_path / "home"))
    assert told["lost"] == 0
    assert not {"pydantic", "sqlalchemy", "click", "rich", "dspy", "tomllib"} & set(told["imported"])


@pytest.mark.parametrize("odd", [Odd(), object(), {1: {2}}, float("nan"), "\ud800", b"\xff", [[]] * 3, lambda: 1])
def test_any_object_is_a_context_and_any_text_a_task(odd: Any, tmp_path: Path) -> None:
    with Reflex(tmp_path) as reflex:
        reflex.log(odd, odd, odd, odd, odd, odd, odd)
        assert reflex.recorder.lost == 0
        (found,) = reflex.failures()
        assert found.failure.severity in SEVERITIES


def test_a_wrong_severity_is_kept_and_marked(tmp_path: Path) -> None:
    with Reflex(tmp_path) as reflex:
        reflex.log("veya", "t", None, "a", severity="urgent")
        (found,) = reflex.failures()
    assert (found.failure.severity, found.failure.context) == ("medium", {NOTE: "the severity was 'urgent'"})


def test_a_home_that_cannot_be_loses_the_event_counts_it_and_returns(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("no folder")
    reflex = Reflex(home)
    assert reflex.log(*FAILED).startswith("evt_")
    assert reflex.recorder.lost == 1
    assert reflex.recorder.why
    home.unlink()
    reflex.close()


def test_without_any_home_nothing_is_raised_and_no_folder_is_made(tmp_path: Path) -> None:
    """A process whose user has no home folder: `~` names none, and a folder of that name would be wrong."""
    code = "import os, pwd\npwd.getpwuid = lambda _: (_ for _ in ()).throw(KeyError('no such user'))\n" + LOG
    assert fresh(code, tmp_path)["lost"] == 2
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_gone_from_under_the_process_is_no_exception(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    code = f"import os, sys; os.mkdir({str(gone)!r}); os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})\n" + LOG
    assert fresh(code.replace("*sys.argv[1:]", "'relative'"), tmp_path)["lost"] == 2


FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such limits")
def test_a_full_disk_loses_what_does_not_fit_and_says_so(tmp_path: Path) -> None:
    """Files of this process may not grow past a page: neither a segment nor many lines fit."""
    code = FULL + LOG.replace("ids = [", "ids = [reflex.log('veya', 't', 'e', 'a' * 900) for _ in range(9)] + [")
    told = fresh(code, tmp_path, REFLEX_HOME=str(tmp_path / "home"))
    assert (len(told["ids"]), told["lost"] > 0, bool(told["why"])) == (11, True, True)
    with Reflex(tmp_path / "home") as reflex:
        there = reflex.status().outcomes
    assert there == 11 - told["lost"]


def test_a_locked_store_is_not_waited_for(tmp_path: Path) -> None:
    with Reflex(tmp_path) as holder, Reflex(tmp_path) as agent:
        with holder.store.write():
            done = threading.Event()
            worker = threading.Thread(target=lambda: (agent.log(*FAILED), done.set()))
            started = time.monotonic()
            worker.start()
            assert done.wait(5)
            assert time.monotonic() - started < 5
            worker.join()
        assert agent.recorder.lost == 0


def test_a_settings_file_that_names_another_home_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`log` reads no settings file, so it writes to `REFLEX_HOME`; whoever reads looks there, too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REFLEX_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "reflex.toml").write_text(f'home = "{(tmp_path / "elsewhere").as_posix()}"')
    with Reflex() as agent:
        agent.log(*FAILED)
        assert agent.recorder.lost == 0
        assert len(agent.failures()) == 1
    assert (tmp_path / "elsewhere" / "store.db").exists()
