"""The compile wing as a library: two functions that do what the commands of the same name do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from dspy_reflex.benchmark.predict import Contender
from dspy_reflex.benchmark.results import CauseReport, RuleReport
from dspy_reflex.benchmark.runner import benchmark_cause, benchmark_rule
from dspy_reflex.errors import CompileError
from dspy_reflex.evalset.load import SINGLE_SPLIT, load_evalset
from dspy_reflex.optimize.compile import run_compile
from dspy_reflex.optimize.modules import PROGRAMS
from dspy_reflex.optimize.options import CompileOptions, CompileResult
from dspy_reflex.optimize.publish import publish
from dspy_reflex.records.taxonomy import Taxonomy
from dspy_reflex.runtime.artifact import Artifact
from dspy_reflex.runtime.lm.connect import connect
from dspy_reflex.taxonomies.load import load_taxonomy

PathLike = str | Path


def compile_program(
    program: str,
    dataset: PathLike | Iterable[PathLike],
    *,
    taxonomy: Taxonomy | None = None,
    out: PathLike = "programs",
    run: PathLike | None = None,
    **options: Any,
) -> CompileResult:
    """Compile one of the two programs and write its artefact.

    Args:
        program: `root_cause` or `rule`.
        dataset: A folder with train.jsonl and val.jsonl, a JSON Lines file, or several of them.
        taxonomy: The label set; the six causes by default.
        out: Folder for `<program>/<version>.json`.
        run: Folder for the run's config and result; by default a new one under `experiments/`.
        **options: Fields of `CompileOptions`, as optimizer, lm, prompt_lm, teacher_lm, seed, threads, budget; all others
            are options of the optimizer, as max_demos and trials.

    Raises:
        ReflexError: Rows, options or models cannot be used, or compiling changed nothing.
    """
    if program not in PROGRAMS:
        raise CompileError(f"there is no program {program!r}; compile one of {', '.join(PROGRAMS)}")
    paths = [dataset] if isinstance(dataset, str | Path) else list(dataset)
    known = {each.name for each in fields(CompileOptions)}
    settings = {name: options.pop(name) for name in [*options] if name not in known}
    chosen = CompileOptions(program, tuple(map(Path, paths)), taxonomy or load_taxonomy(), settings=settings, **options)
    return run_compile(chosen, out=Path(out), run=Path(run) if run else new_run(chosen))


def evaluate_program(
    program: Artifact | Any, dataset: PathLike, *, split: str | None = None, lm: str = "offline"
) -> CauseReport | RuleReport:
    """Score a program on labelled failures, through the light runtime.

    Args:
        program: An artefact, or a DSPy module such as `RootCauseClassifier()`, which is exported first.
        dataset: A folder with splits, or a JSON Lines file.
        split: The split of a folder; `test` by default.
        lm: The model it runs on.

    Raises:
        BenchmarkError: The program was compiled on these rows.
        ReflexError: Rows or model cannot be used.
    """
    artifact = program if isinstance(program, Artifact) else publish(program)
    taxonomy = Taxonomy.model_validate(artifact.data["taxonomy"])
    evalset = load_evalset(dataset, taxonomy)
    rows = evalset.split(split or (SINGLE_SPLIT if SINGLE_SPLIT in evalset.splits else "test"))
    contender = Contender(artifact.name, "program", artifact, connect(lm))
    judge = benchmark_cause if artifact.program == "root_cause" else benchmark_rule
    return judge(rows, [contender], baselines=False, dataset=evalset.name)


def new_run(options: CompileOptions, root: Path = Path("experiments")) -> Path:
    """The first folder that is not there yet, named after what is compiled."""
    name = f"{options.program}-{options.optimizer}-seed{options.seed}"
    tries = (root / (name if i == 1 else f"{name}-{i}") for i in range(1, 10_000))
    return next(path for path in tries if not path.exists())
