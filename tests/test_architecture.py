"""The laws of the house that a program can check."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "dspy_reflex"
MODULES = sorted(PACKAGE.rglob("*.py"))
DATA_FOLDERS = ("programs", "datasets", "experiments")
MAX_LINES = 400
MAX_FUNCTION_LINES = 60
OUTSIDE_THE_RUN_WING = {"__main__", "cli", "optimize", "runs", "benchmark", "evalset"}
MACHINE_PATHS = re.compile(
    r"(?<![\w.])/(?:work|root|opt|farm|tmp)/\w|/home/(?!(?:you|user|me|agent|app)\b)\w+/", re.ASCII
)
"""Folders of the machines that this project is built on; `/tmp/...` is how a scratch folder shows itself."""
TEXT_FILES = {".py", ".toml", ".md", ".cfg", ".lock", ".txt", ".yml", ".yaml", ""}
SKIPPED_FOLDERS = {"__pycache__", "build", "dist", "node_modules"}

pytestmark = pytest.mark.filterwarnings("default")


def named(path: Path) -> str:
    """How a file shows in the name of a test."""
    return str(path.relative_to(ROOT))


@cache
def tree_of(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def project() -> dict[str, Any]:
    """What pyproject.toml says."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def rooms() -> set[str]:
    """The modules and packages right below the package."""
    found = {path.parent.name for path in PACKAGE.glob("*/__init__.py")} | {path.stem for path in PACKAGE.glob("*.py")}
    return found - {"__init__"}


def imports(tree: ast.Module) -> Iterator[str]:
    """Top-level names of all imported modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def texts() -> list[Path]:
    """Every text file that belongs to the project, the data aside."""
    skipped = {*SKIPPED_FOLDERS, *DATA_FOLDERS}
    found = (path for path in ROOT.rglob("*") if path.suffix in TEXT_FILES and path.is_file())
    return [
        path
        for path in found
        if not any(part in skipped or (part.startswith(".") and part != ".ci") for part in path.relative_to(ROOT).parts[:-1])
    ]  # fmt: skip


def test_rooms_import_only_what_lies_below_them() -> None:
    """The contracts of pyproject.toml hold."""
    program = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    done = subprocess.run(
        [sys.executable, "-c", program, "--no-cache", "--no-logo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_room_of_the_run_wing_is_kept_from_the_compile_wing() -> None:
    """A new room cannot be forgotten in the contract."""
    contracts = {contract["id"]: contract for contract in project()["tool"]["importlinter"]["contracts"]}
    listed = {name.removeprefix("dspy_reflex.") for name in contracts["wings"]["source_modules"]}
    assert listed == rooms() - OUTSIDE_THE_RUN_WING


@pytest.mark.parametrize("folder", DATA_FOLDERS)
def test_data_folders_hold_data_only(folder: str) -> None:
    """A Python file there would shadow Hugging Face's `datasets`, or be run when a program is loaded."""
    assert [named(path) for path in (ROOT / folder).rglob("*.py*")] == []
    assert [named(path) for path in (ROOT / folder).rglob("*.pkl")] == []


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    """One sentence at the top, at least."""
    assert ast.get_docstring(tree_of(path)), "no docstring"


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_module_fits_in_one_head(path: Path) -> None:
    """Files and functions stay small."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert len(lines) <= MAX_LINES
    functions = [node for node in ast.walk(tree_of(path)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    long = {each.name: length for each in functions if (length := length_of(each)) > MAX_FUNCTION_LINES}
    assert long == {} or path.parent.name == "versions", "but a revision of the store is a list of tables"


def length_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the signature to the end."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_no_module_loads_code_from_data(path: Path) -> None:
    """No pickle in any of its forms."""
    assert set(imports(tree_of(path))) & {"pickle", "cloudpickle", "dill", "shelve", "marshal", "joblib"} == set()


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_no_error_is_swallowed(path: Path) -> None:
    """A handler that catches everything does something about it."""
    silent = [node.lineno for node in ast.walk(tree_of(path)) if isinstance(node, ast.ExceptHandler) and swallows(node)]
    assert silent == []


def swallows(handler: ast.ExceptHandler) -> bool:
    """Whether it catches everything and does nothing."""
    catches_all = handler.type is None or ast.unparse(handler.type) in ("Exception", "BaseException")
    return catches_all and all(isinstance(step, (ast.Pass, ast.Continue)) for step in handler.body)


def test_no_file_names_a_machine() -> None:
    """Paths of the machine that wrote it, and hosts of registries in the lock, stay out."""
    found = {
        named(path): MACHINE_PATHS.findall(path.read_text(encoding="utf-8"))
        for path in texts()
        if path != Path(__file__)
    }
    assert {name: paths for name, paths in found.items() if paths} == {}


def test_the_lock_names_no_place() -> None:
    """Names, versions and hashes only; and nothing brings a deep-learning framework in."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if re.search(r"://|@ |^-|^torch|^nvidia|^tensorflow|^jax", line)] == []
    assert all(re.match(r"[a-z0-9-]+==|    --hash=sha256:[0-9a-f]{64}", line) for line in lines)


def test_the_lock_covers_what_the_project_asks_for() -> None:
    """Every dependency of pyproject.toml is locked."""
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE))
    told = project()
    asked = [*told["project"]["dependencies"], *told["dependency-groups"]["dev"]]
    asked += [each for extra in told["project"]["optional-dependencies"].values() for each in extra]
    assert {re.split(r"[\[<>=~! ;]", each)[0] for each in asked} - locked == set()
