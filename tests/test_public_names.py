"""The names that the package promises."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dspy_reflex

ROOT = Path(__file__).parents[1]
COMPILE_WING = {"RootCauseClassifier", "RuleProposer", "compile_program", "evaluate_program", "publish"}


def bare(code: str) -> subprocess.CompletedProcess[str]:
    """Run code where nothing is installed: neither DSPy nor anything else."""
    return subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}"],
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_name_can_be_had() -> None:
    assert len(dspy_reflex.__all__) <= 15
    for name in dspy_reflex.__all__:
        found = getattr(dspy_reflex, name)
        assert found.__name__ == name
        assert found.__doc__


def test_the_names_are_those_that_issue_and_readme_use() -> None:
    assert {"load_program", "Failure", "Diagnosis", "Proposal", *COMPILE_WING} <= set(dspy_reflex.__all__)


def test_names_are_listed_in_order_and_completed() -> None:
    assert dspy_reflex.__all__ == sorted(dspy_reflex.__all__)
    assert dir(dspy_reflex) == sorted([*dspy_reflex.__all__, "__version__"])


def test_a_type_checker_sees_the_same_names_from_the_same_places() -> None:
    """What stands under TYPE_CHECKING is what `__getattr__` finds."""
    tree = ast.parse((ROOT / "dspy_reflex" / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    told = {alias.name: node.module for node in imports for alias in node.names}
    assert set(told) == set(dspy_reflex.__all__)
    assert told == {name: getattr(dspy_reflex, name).__module__ for name in told}


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'dspy_reflex' has no attribute 'diagnose_all'"):
        _ = dspy_reflex.diagnose_all
    with pytest.raises(ImportError):
        exec("from dspy_reflex import diagnose_all")


def test_everything_can_be_imported_at_once() -> None:
    found: dict[str, object] = {}
    exec("from dspy_reflex import *", found)
    assert set(dspy_reflex.__all__) <= set(found)


@pytest.mark.parametrize("name", sorted(COMPILE_WING))
def test_without_the_extra_one_sentence_names_it(name: str) -> None:
    code = f"import dspy_reflex\ntry: dspy_reflex.{name}\nexcept dspy_reflex.ReflexError as error: print(error)"
    done = bare(code)
    assert done.stdout == f"{name} needs the extra [compile]: pip install 'dspy-reflex[compile]'\n", done.stderr


def test_importing_the_package_needs_nothing() -> None:
    done = bare("import dspy_reflex; print(dspy_reflex.__version__, len(dir(dspy_reflex)))")
    assert done.stdout.split() == [dspy_reflex.__version__, str(len(dspy_reflex.__all__) + 1)], done.stderr


def test_the_version_is_that_of_the_project() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == dspy_reflex.__version__
