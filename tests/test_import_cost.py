"""What a fresh process has imported. import-linter cannot see laziness; `sys.modules` can."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMPILE_WING = {
    "dspy", "litellm", "optuna", "pandas", "datasets", "sklearn", "scipy", "matplotlib", "numpy", "jinja2", "mlflow",
}  # fmt: skip
CLIENTS = {"httpx", "anthropic", "stamina"}
HEAVY = COMPILE_WING | CLIENTS | {"pydantic", "click", "rich", "asyncio"}

RENDER = """
import json
from dspy_reflex.runtime import artifact, inputs, render
FIELDS = ("task", "expected_outcome", "actual_outcome", "context")
taxonomy = {"causes": [{"name": "A"}, {"name": "B"}]}
content = {key: None for key in artifact.REQUIRED} | {
    "taxonomy": taxonomy, "taxonomy_digest": artifact.taxonomy_digest(taxonomy),
    "model": "any", "instructions": "", "demos": [],
    "program": "root_cause", "labels": ["A", "B"], "messages": [{"role": "system", "content": "Name the cause."}],
    "inputs": [{"name": name} for name in FIELDS], "outputs": [], "tail": "Answer.", "scores": {},
    "retrieval": {
        "k": 1, "vectorizer": "words-and-pairs/1", "lead": "", "index": {"a": "0:1"},
        "examples": [{"id": "e", "values": {"task": "a"}, "answer": "A"}],
    },
}
with open("program.json", "w") as file:
    file.write(artifact.dumps(artifact.seal(content)))
from pathlib import Path
messages = render.render(artifact.read(Path("program.json")), inputs.cause_inputs({"task": "t", "actual_outcome": "a"}))
assert messages[-1]["content"].endswith("Answer."), messages
assert messages[-2] == {"role": "assistant", "content": "A"}, messages
"""

ANSWER = (
    RENDER
    + """
from dspy_reflex.runtime.lm.connect import connect
connect("offline")
"""
)

HELP = """
import sys
from dspy_reflex.cli.main import main
sys.argv = ["dspy-reflex", "--help"]
try:
    main()
except SystemExit as stop:
    assert stop.code == 0, stop.code
"""

REPORT = "\nimport json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"


def imported(code: str, folder: Path) -> set[str]:
    """Top-level modules of a fresh process after it ran `code`."""
    arguments = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}){code}{REPORT}"]
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        pytest.param("\nimport dspy_reflex", HEAVY, id="the package"),
        pytest.param(RENDER, HEAVY, id="reading and rendering"),
        pytest.param(ANSWER, HEAVY, id="the offline model"),
        pytest.param("\nfrom dspy_reflex import Failure", HEAVY - {"pydantic", "asyncio"}, id="a record"),
        pytest.param("\nfrom dspy_reflex import load_program", COMPILE_WING | CLIENTS, id="the typed runtime"),
        pytest.param(HELP, COMPILE_WING | CLIENTS | {"pydantic", "rich"}, id="--help"),
    ],
)
def test_nothing_heavy_is_imported(code: str, unwanted: set[str], tmp_path: Path) -> None:
    """Each face of the package brings only what it needs."""
    assert sorted(imported(code, tmp_path) & unwanted) == []


def test_the_probe_sees_what_is_imported(tmp_path: Path) -> None:
    """A probe that finds nothing anywhere would pass every test above."""
    assert {"click", "json"} <= imported("\nimport click", tmp_path)
