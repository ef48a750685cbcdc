"""The wheel works alone: built here, installed without extras into an empty venv outside the checkout, and used there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FAILURES = [
    {"id": "f-1", "task": "Refund order 42", "actual_outcome": "The refund API timed out and the agent gave up."},
    {"id": "f-2", "task": "Name the cheapest plan", "actual_outcome": "It named a plan that does not exist."},
]
BUNDLED = "dspy_reflex/_bundled/"
PLACES = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")
"""Variables through which the checkout or its environment could show in the empty venv."""

pytestmark = pytest.mark.xdist_group("wheel")  # built and installed once, not once a worker


@dataclass(frozen=True)
class Installed:
    """The wheel in its venv, and the empty folder it is used in."""

    bin: Path
    folder: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the venv."""
        command = [str(self.bin / arguments[0]), *arguments[1:]]
        return subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False)

    @property
    def env(self) -> dict[str, str]:
        """An environment that knows neither the checkout nor its venv nor a home of programs."""
        kept = {name: value for name, value in os.environ.items() if name not in PLACES}
        return {**kept, "HOME": str(self.folder), "REFLEX_HOME": str(self.folder / "none")}


def build(target: str, source: Path, folder: Path) -> Path:
    """Build a `wheel` or an `sdist` of a source tree; needs no network."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.iterdir()
    return built


def constraints(folder: Path) -> Path:
    """The lock without its hashes, which pip does not take in constraints."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    path = folder / "constraints.txt"
    path.write_text(re.sub(r" *\\\n *--hash=\S+", "", lock), encoding="utf-8")
    return path


def install(wheel: Path, venv: Path, locked: Path) -> None:
    """Make a venv and install the wheel with its base dependencies, with uv where present, else pip."""
    python, uv = str(venv / "bin" / "python"), shutil.which("uv")
    if uv:
        steps = [[uv, "venv", "--python", sys.executable, str(venv)], [uv, "pip", "install", "--python", python]]
    else:
        steps = [[sys.executable, "-m", "venv", str(venv)], [python, "-m", "pip", "install"]]
    steps[1] += ["--quiet", "-c", str(locked), str(wheel)]
    for step in steps:
        done = subprocess.run(step, cwd=venv.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the working tree."""
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel, installed without extras, and a folder with two failures."""
    place = tmp_path_factory.mktemp("elsewhere")
    install(wheel, place / "venv", constraints(place))
    folder = place / "work"
    folder.mkdir()
    lines = "".join(json.dumps(failure) + "\n" for failure in FAILURES)
    (folder / "failures.jsonl").write_text(lines, encoding="utf-8")
    return Installed(place / "venv" / "bin", folder)


def names_in(wheel: Path) -> set[str]:
    """The files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.mark.parametrize("folder", ["programs/root_cause/", "programs/rule/", "datasets/failures/"])
def test_it_carries_programs_and_eval_set_as_data(wheel: Path, folder: str) -> None:
    """All of `programs/` and the eval set are in it, and no code among them."""
    carried = {name.removeprefix(BUNDLED) for name in names_in(wheel) if name.startswith(BUNDLED + folder)}
    ours = {path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob("*") if path.is_file()}
    assert carried == ours
    assert any(name.endswith((".json", ".jsonl")) for name in carried)
    assert not any(name.endswith((".py", ".pyc", ".pkl")) for name in carried)


def test_it_carries_the_package_and_nothing_of_the_checkout(wheel: Path) -> None:
    """Modules, their data, the licence; no tests."""
    names = names_in(wheel)
    assert {"dspy_reflex/py.typed", "dspy_reflex/taxonomies/six.toml", "dspy_reflex/cli/main.py"} <= names
    assert {name.partition("/")[0] for name in names} == {"dspy_reflex", "dspy_reflex-0.1.0.dist-info"}
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_the_sdist_builds_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """Who builds from source gets what we built."""
    sdist = build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    again = build("wheel", tmp_path / "dspy_reflex-0.1.0", tmp_path / "again")
    assert names_in(again) == names_in(wheel)


def test_it_runs_without_the_compile_wing(installed: Installed) -> None:
    """Neither DSPy nor the checkout is importable where the next tests run."""
    probe = (
        "from importlib.util import find_spec as f; print([n for n in ('dspy', 'sklearn', 'numpy', 'tests') if f(n)])"
    )
    assert installed.run("python", "-c", probe).stdout.strip() == "[]"
    where = installed.run("python", "-c", "import dspy_reflex; print(dspy_reflex.__file__)").stdout.strip()
    assert Path(where).is_relative_to(installed.bin.parent)


def test_it_diagnoses_with_the_bundled_program(installed: Installed) -> None:
    """No option, no setting, no key: two failures in, two diagnoses out."""
    done = installed.run("dspy-reflex", "diagnose", "failures.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["diagnoses"]
    assert [one["failure_id"] for one in found] == ["f-1", "f-2"]
    assert all(one["root_cause"] and one["program"].startswith("root_cause@") for one in found)


def test_compiling_there_is_one_sentence_that_names_the_extra(installed: Installed) -> None:
    """No traceback: what is missing, and how to get it."""
    done = installed.run("dspy-reflex", "compile", "root_cause")
    assert done.returncode == 2
    assert "[compile]" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
    assert sorted(path.name for path in installed.folder.iterdir()) == ["failures.jsonl"]


def test_it_can_be_run_as_a_module(installed: Installed) -> None:
    """`python -m dspy_reflex` is the command."""
    done = installed.run("python", "-m", "dspy_reflex", "--version")
    assert done.returncode == 0
    assert "0.1.0" in done.stdout
