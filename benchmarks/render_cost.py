"""Load a program and render one prompt for a plain dict, in a fresh process: ours against DSPy's. Goal: a tenth."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from processes import add_artifact, artifact_path, costs, parser, python, show

from dspy_reflex.runtime.artifact import read

FAILURE = {
    "task": "Move the weekly report to the shared folder",
    "expected_outcome": "The report is in the shared folder",
    "actual_outcome": "PermissionError: the folder is read-only",
    "context": {"tool": "move_file", "attempts": 3},
}

OURS = """
import json, sys
from pathlib import Path
from dspy_reflex.runtime.artifact import read
from dspy_reflex.runtime.inputs import cause_inputs
from dspy_reflex.runtime.render import render
messages = render(read(Path(sys.argv[1])), cause_inputs(json.loads(sys.argv[2])))
print(json.dumps(messages), file=open(sys.argv[3], "w"))
"""

# What a user of DSPy alone would do: the signature in code, the state from a file. The texts are clipped beforehand.
DSPY = """
import json, sys
from typing import Literal
import dspy
state, fields, values = (json.loads(open(path).read()) for path in sys.argv[1:4])
kinds = {"str": str, "float": float}
signature = dspy.make_signature({
    field["name"]: (
        Literal[tuple(field["choices"])] if field["type"] == "choice" else kinds[field["type"]],
        (dspy.InputField if field["input"] else dspy.OutputField)(desc=field["desc"]),
    )
    for field in fields
})
module = dspy.Predict(signature)
module.load(sys.argv[1])
messages = dspy.ChatAdapter().format(module.signature, module.demos, values)
print(json.dumps(messages), file=open(sys.argv[4], "w"))
"""


def main() -> None:
    """Measure, check that both rendered the same, and print."""
    made = parser(__doc__)
    add_artifact(made)
    options = made.parse_args()
    path = artifact_path(options.artifact)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        ours, theirs = python(OURS, str(path), json.dumps(FAILURE), str(out / "ours")), _dspy_command(path, out)
        found = costs({"bare": python("pass"), "ours": ours, "dspy": theirs}, options.runs)
        if json.loads((out / "ours").read_text()) != json.loads((out / "theirs").read_text()):
            raise SystemExit("the two render differently: `dspy-reflex programs verify` says more")
    light, full = (found[name].above(found["bare"]) for name in ("ours", "dspy"))
    result = {
        "benchmark": "render_cost",
        "program": read(path).name,
        "runs": options.runs,
        "bare_s": found["bare"].seconds,
        "dspy_reflex_s": light.seconds,
        "dspy_s": full.seconds,
        "time_ratio": light.seconds / full.seconds,
        "dspy_reflex_mib": light.peak_mib,
        "dspy_mib": full.peak_mib,
        "memory_ratio": light.peak_mib / full.peak_mib,
    }
    show(result, options.json)


def _dspy_command(path: Path, out: Path) -> list[str]:
    from dspy_reflex.runtime.inputs import cause_inputs

    artifact = read(path)
    data = artifact.data
    fields = [{**field, "input": side == "inputs"} for side in ("inputs", "outputs") for field in data[side]]
    state = {**artifact.to_dspy(), "metadata": {"dependency_versions": {"dspy": data["dspy_version"]}}}
    if "predict" in state:  # a module with one predictor: `Predict.load` takes the predictor's own state
        state = {**state["predict"], "metadata": state["metadata"]}
    paths = [out / f"{name}.json" for name in ("state", "fields", "values")]
    for place, content in zip(paths, (state, fields, cause_inputs(FAILURE)), strict=True):
        place.write_text(json.dumps(content), encoding="utf-8")
    return python(DSPY, *map(str, paths), str(out / "theirs"))


if __name__ == "__main__":
    main()
