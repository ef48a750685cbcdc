"""Every block of the README and the docs runs, every table is the committed result, every result is what the code gives."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click import Context

from dspy_reflex.cli.data.group import COMMANDS
from dspy_reflex.cli.main import main
from dspy_reflex.optimize.optimizers import OPTIMIZERS
from dspy_reflex.runtime.library import find
from dspy_reflex.runtime.lm.connect import PROVIDERS
from dspy_reflex.runtime.lm.offline import MODEL
from dspy_reflex.taxonomies.load import load_taxonomy
from tests.doc_tables import chain_sentence, failures_table, real_sentence, real_table, review_sentence

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DAY = re.compile(r"_\d{4}-\d\d-\d\d_")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")


def blocks(language: str) -> list[Any]:
    """All blocks of one language, each under the name of its page."""
    found = [(page.name, text) for page in PAGES for kind, text in BLOCK.findall(page.read_text()) if kind == language]
    return [pytest.param(text, id=f"{name}-{i}") for i, (name, text) in enumerate(found)]


def result(run: str) -> dict[str, Any]:
    """A committed result."""
    return json.loads((ROOT / "experiments" / run / "result.json").read_text())


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like a clone, in which commands may write."""
    for name in ("datasets", "programs", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REFLEX_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.mark.parametrize("block", blocks("python"))
def test_python_blocks_print_what_they_say(block: str, checkout: Path) -> None:
    """A line `#> text` is what was printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, str(checkout / "block.py"), "exec"), {"__name__": "__main__"})
    said = [line[3:] for line in block.splitlines() if line.startswith("#> ")]
    assert said
    assert printed.getvalue().splitlines()[-len(said) :] == said  # DSPy prints before


@pytest.mark.parametrize("block", blocks("bash"))
@pytest.mark.usefixtures("checkout")
def test_commands_succeed_and_print_something(
    block: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each line by itself."""
    for line in block.replace("\\\n", " ").splitlines():
        monkeypatch.setattr("sys.argv", shlex.split(line))
        with pytest.raises(SystemExit) as left:
            main()
        told = capsys.readouterr()
        assert (left.value.code, bool(told.out)) == (0, True), told.err


@pytest.mark.parametrize("block", blocks("diff"))
@pytest.mark.usefixtures("checkout")
def test_diffs_are_what_propose_prints(
    block: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Word for word, but for the day."""
    command = "dspy-reflex propose docs/demo/failures.jsonl --base-dir docs/demo/agent"
    monkeypatch.setattr("sys.argv", command.split())
    with pytest.raises(SystemExit):
        main()
    assert DAY.sub("", block) in DAY.sub("", capsys.readouterr().out)


def _help(verb: str) -> str:
    """What a command of `data` says about itself."""
    module = import_module(f"dspy_reflex.cli.data.{COMMANDS[verb][0]}")
    return str(module.command.get_help(Context(module.command)))


@pytest.mark.parametrize("block", blocks("console"))
def test_console_blocks_name_what_there_is(block: str) -> None:
    """They need a network, a key or minutes; targets, extras, commands and options in them exist."""
    makefile, project = (ROOT / "Makefile").read_text(), (ROOT / "pyproject.toml").read_text()
    for words in (shlex.split(line[2:], comments=True) for line in block.replace("\\\n", " ").splitlines() if line):
        match words:
            case ["make", target, *_]:
                assert re.search(rf"^{target}:", makefile, re.MULTILINE)
            case ["pip", "install", what]:
                extra = re.fullmatch(r"\.(?:\[(\w+)\])?", what)
                assert extra is not None
                assert extra[1] is None or f"\n{extra[1]} = [" in project
            case ["dspy-reflex", "compile", *options]:
                assert options[options.index("--optimizer") + 1] in OPTIMIZERS
                assert {options[i + 1].split("/")[0] for i, o in enumerate(options) if o.endswith("-lm")} <= {
                    *PROVIDERS
                }
            case ["dspy-reflex", "data", verb, *options]:
                assert f"--{next((o[2:] for o in options if o.startswith('--')), 'out')}" in _help(verb)
            case _:
                assert words[:1] in (["git"], ["cd"]), words


def test_the_readme_has_its_sections_in_order() -> None:
    """What it is first, what it does not do before the install."""
    sections = re.findall(r"^## (.+)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert sections == [
        "From failures to a rule", "Compile on your own failures", "Measured", "What it does not do yet", "Install",
    ]  # fmt: skip


def test_links_lead_somewhere() -> None:
    """Relative ones, from the page they stand on."""
    for page in PAGES:
        for link in LINK.findall(page.read_text()):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_the_readme_names_every_cause_and_the_docs_every_optimizer_and_provider() -> None:
    """So that neither is forgotten when one is added."""
    readme, docs = (ROOT / "README.md").read_text(), (ROOT / "docs" / "compile.md").read_text()
    assert all(f"`{label}`" in readme for label in load_taxonomy().labels)
    assert all(f"| `{name}` |" in docs for name in OPTIMIZERS)
    assert all(f"`{prefix}/…`" in docs for prefix in PROVIDERS)


def test_tables_are_the_committed_results() -> None:
    """Number by number, in the README and in the docs."""
    readme, measured = (ROOT / "README.md").read_text(), (ROOT / "docs" / "measured.md").read_text()
    splits = {name: result(f"failures-root_cause-{name}") for name in ("test", "test_hard", "unknown", "controls")}
    rules = {name: result(f"failures-rule-{name}") for name in ("test", "test_hard")}
    chain = chain_sentence({name: result(f"failures-chain-{name}") for name in ("test", "test_hard")})
    by_group, by_source = result("real-failures-by-group"), result("real-failures-by-source")
    assert failures_table(splits["test"], splits["test_hard"], rules["test"], rules["test_hard"]) in readme
    assert real_table(by_group, by_source) in measured
    assert review_sentence(splits) in " ".join(measured.split())
    assert all(chain in " ".join(page.split()) for page in (readme, measured))
    assert real_sentence(by_group, by_source) in " ".join(readme.split())


@pytest.mark.parametrize("program", ["root_cause", "rule"])
def test_the_committed_results_are_what_the_bundled_programs_score(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run anew on the test split; seconds differ, scores must not."""
    monkeypatch.chdir(ROOT)
    path = ROOT / "programs" / program / f"{find(program, MODEL, [ROOT / 'programs']).version}.json"
    command = ["dspy-reflex", "benchmark", program, "--program", str(path), "--baselines", "--json"]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit):
        main()
    fresh = {row["name"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    committed = {row["name"]: row for row in result(f"failures-{program}-test")["rows"]}
    score = "macro_f1" if program == "root_cause" else "score"
    assert {name: row[score] for name, row in fresh.items()} == pytest.approx(
        {name: committed[name][score] for name in fresh}
    )
    assert next(iter(fresh)) == next(iter(committed))


def test_the_docs_say_what_readers_said() -> None:
    """Who preferred which rule, and what a reader of the text alone gets on test_hard."""
    readme, measured = (" ".join((ROOT / page).read_text().split()) for page in ("README.md", "docs/measured.md"))
    preferred, reader = result("rule-preference"), result("reader-test_hard")
    low, high = preferred["interval"]
    pairs = f"in {preferred['preferred']['program']} of {preferred['n']} pairs"
    assert pairs in readme
    assert f"{pairs} ({preferred['share']:.2f} [{low:.2f}, {high:.2f}]" in measured
    low, high = reader["interval"]
    assert f"{reader['accuracy']:.2f} [{low:.2f}, {high:.2f}]" in measured


def test_the_card_is_what_publishing_the_set_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures in the card are computed, not typed: publishing it again changes no byte."""
    copy = tmp_path / "failures"
    shutil.copytree(ROOT / "datasets" / "failures", copy)
    command = ["dspy-reflex", "data", "publish", str(copy), "--about", str(copy / "about.toml"), "--out", str(copy)]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    for file in (ROOT / "datasets" / "failures").iterdir():
        if file.is_file():
            assert (copy / file.name).read_bytes() == file.read_bytes(), file.name
