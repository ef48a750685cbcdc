"""Runs the command line: in this process through `main`, or in a process of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from dspy_reflex.cli.main import main
from tests.optimize.compiles import ROOT


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON document and nothing else."""
        return json.loads(self.out)

    @property
    def refusal(self) -> str:
        """The one sentence of a command that was given something it cannot use."""
        assert (self.code, self.out) == (2, ""), self
        lines = self.err.strip().splitlines()
        assert "Traceback" not in self.err
        assert lines[-1].startswith(("error: ", "Error: ")), self.err
        return lines[-1]


class Reflex(Protocol):
    """Run `dspy-reflex` with these arguments."""

    def __call__(self, *arguments: object, stdin: str = "") -> Done: ...


def in_process(patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Reflex:
    """A runner that calls `main` here."""

    def run(*arguments: object, stdin: str = "") -> Done:
        capsys.readouterr()
        patch.setattr(sys, "argv", ["dspy-reflex", *map(str, arguments)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as left:
            main()
        assert isinstance(left.value.code, int)
        found = capsys.readouterr()
        return Done(left.value.code, found.out, found.err)

    return run


def process(folder: Path, *arguments: object, stdin: str = "", before: str = "", **env: str) -> Done:
    """Run it in a fresh process in a folder; `before` is Python that runs first."""
    program = f"{before}\nfrom dspy_reflex.cli.main import main\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)} | env, input=stdin, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, hidden ones too, with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
