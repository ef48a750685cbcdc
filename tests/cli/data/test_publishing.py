"""`data publish`: a folder by default, the hub only when told to, and private."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.cli.data.hub import TOKEN, Hub
from tests.cli.runner import Done, Reflex, files_below, process
from tests.evalset.rows import raw, write
from tests.runtime.lm.loopback import running

ABOUT = 'licence = "MIT"\n' + "".join(
    f'{key} = "x"\n' for key in ["title", "made", "labelled", "splits", "limits", "summary"]
)
OPTIONS = ("--about", "about.toml", "--out", "out")
COMMAND = ("data", "publish", "mine.jsonl", *OPTIONS)


@pytest.fixture
def folder(in_empty_folder: Path) -> Path:
    """A folder with a small set and its TOML file."""
    causes = ("tool_failure", "context_loss")
    write(in_empty_folder / "mine.jsonl", *(raw(n, root_cause=cause) for n, cause in enumerate(causes)))
    (in_empty_folder / "about.toml").write_text(ABOUT)
    return in_empty_folder


def published(hub: Hub, folder: Path, *arguments: str, source: str = "mine.jsonl", stdin: str = "") -> Done:
    """Run the command in a process of its own whose hub is this one."""
    env = {"HF_ENDPOINT": hub.endpoint, "HF_TOKEN": TOKEN, "HF_HOME": str(folder / ".hf"), "HF_HUB_OFFLINE": "0"}
    done = process(folder, "data", "publish", source, *OPTIONS, *arguments, stdin=stdin, **env)
    assert TOKEN not in done.out + done.err
    return done


def test_a_folder_is_written_and_described(reflex: Reflex, folder: Path) -> None:
    """As JSON: rows, files and their sizes, version."""
    found = reflex(*COMMAND, "--json").json
    there = files_below(folder / "out")
    assert found["rows"] == {"all": 2}
    assert found["files"] == {name: len(content) for name, content in there.items()}
    assert found["pushed"] is None
    assert found["version"].encode() in there["README.md"]
    assert hashlib.sha256(there["all.jsonl"]).hexdigest().encode() in there["manifest.json"]


@pytest.mark.usefixtures("folder")
def test_in_words_it_is_one_line(reflex: Reflex) -> None:
    """Where, what, which version."""
    done = reflex(*COMMAND)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("out: all 2; ")


def test_nothing_is_asked_of_the_hub_without_push(folder: Path) -> None:
    """Not even where it could be reached."""
    with running(Hub()) as hub:
        assert published(hub, folder).code == 0
        assert hub.paths == []


def test_a_push_is_private_and_sends_what_was_written(folder: Path) -> None:
    """After a yes, in one commit, with the token, and nothing else that lies there."""
    with running(Hub()) as hub:
        done = published(hub, folder, "--push", "me/mine", "--json", stdin="y\n")
        create, commit = (one for one in hub.asked if one.what.endswith(("/create", "/commit/main")))
        assert create.json == {"name": "mine", "organization": "me", "type": "dataset", "visibility": "private"}
        assert {create.token, commit.token} == {f"Bearer {TOKEN}"}
        assert hub.repository.files == files_below(folder / "out")
        assert done.json["pushed"] == f"{hub.endpoint}/datasets/me/mine"
    for name, size in done.json["files"].items():
        assert f"{name} {size:,}" in " ".join(done.err.split())


def test_other_files_of_the_folder_stay_here(folder: Path) -> None:
    """A set published in place may lie beside notes."""
    with running(Hub()) as hub:
        assert published(hub, folder).code == 0
        (folder / "out" / "secret.txt").write_text("mine")
        assert published(hub, folder, "--push", "me/mine", "--yes", source="out").code == 0
        assert set(hub.repository.files) == {"README.md", "all.jsonl", "manifest.json"}


def test_a_no_sends_nothing(folder: Path) -> None:
    """The folder is there all the same."""
    with running(Hub()) as hub:
        done = published(hub, folder, "--push", "me/mine", stdin="n\n")
        assert hub.paths == []
    assert done.code == 0
    assert "nothing was sent" in done.err
    assert (folder / "out" / "manifest.json").is_file()


def test_public_is_public(folder: Path) -> None:
    """Only when told to."""
    with running(Hub()) as hub:
        assert published(hub, folder, "--push", "me/mine", "--public", "--yes").code == 0
        assert hub.repository.visibility == "public"
        assert hub.repository.files


@pytest.mark.parametrize(("visibility", "code"), [("private", 0), ("public", 2)])
def test_a_public_repository_gets_nothing_that_is_private(visibility: str, code: int, folder: Path) -> None:
    """It keeps its visibility, whatever was asked for; a private one gets the next version."""
    with running(Hub(visibility=visibility)) as hub:
        done = published(hub, folder, "--push", "me/mine", "--yes")
        assert done.code == code
        assert bool(hub.repository.files) == (code == 0)
    if code:
        assert "me/mine: is there already, and public; nothing was sent" in done.refusal


@pytest.mark.parametrize(
    ("refused", "status", "said"),
    [
        ("/api/repos/create", 401, "the hub does not know the token"),
        ("/api/repos/create", 403, "the token may not write there"),
        ("/commit/main", 403, "the token may not write there"),
        ("/commit/main", 409, "the hub answered HTTP 409 (as scripted)"),
    ],
)
def test_a_refusal_of_the_hub_is_one_sentence(refused: str, status: int, said: str, folder: Path) -> None:
    """With what to do, and no file there."""
    with running(Hub(refused=refused, status=status)) as hub:
        done = published(hub, folder, "--push", "me/mine", "--yes")
        assert not hub.repository.files
    assert f"error: me/mine: {said}" in done.refusal


@pytest.mark.parametrize("offline", [True, False])
def test_a_hub_that_is_not_there_is_one_sentence(offline: bool, folder: Path) -> None:
    """Nobody listens, or the person wants no network."""
    with running(Hub()) as hub:
        gone = hub.endpoint
    env = {"HF_ENDPOINT": gone, "HF_TOKEN": TOKEN, "HF_HOME": str(folder), "HF_HUB_OFFLINE": str(int(offline))}
    done = process(folder, *COMMAND, "--push", "me/mine", "--yes", **env)
    assert "error: me/mine: the hub was not reached" in done.refusal


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--push", "mine"), "'mine' has no owner; give OWNER/NAME"),
        (("--push", "me/mi ne"), "is no name on the hub"),
        (("--push", "a/b/c"), "is no name on the hub"),
        (("--public",), "--public says how to push; give --push"),
        (("--yes",), "--yes says how to push; give --push"),
    ],
)
def test_a_push_that_cannot_be_meant_writes_nothing(
    arguments: tuple[str, ...], said: str, reflex: Reflex, folder: Path
) -> None:
    """Said before anything is done."""
    assert said in reflex(*COMMAND, *arguments).refusal
    assert not (folder / "out").exists()


def test_bad_input_is_refused(reflex: Reflex, folder: Path) -> None:
    """The words, the rows, the place."""
    (folder / "about.toml").write_text('title = "x"\nlicense = "MIT"\n')
    done = reflex(*COMMAND)
    assert done.code == 2
    assert "license is not known" in done.err
    assert "licence is missing" in done.err
    (folder / "about.toml").write_text(ABOUT)
    write(folder / "mine.jsonl", raw(1, root_cause="tool_falure"))
    done = reflex(*COMMAND)
    assert done.code == 2
    assert "did you mean 'tool_failure'?" in done.err
    assert "data validate mine.jsonl" in done.err
    assert not (folder / "out").exists()
