"""`export`: what it says and writes, what it refuses, and that nothing leaves this machine unless somebody says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.data.hub import TOKEN, Hub
from tests.cli.loop import OTHER, RULE, Workspace
from tests.cli.runner import Done, files_below, process
from tests.finetune.taught import failed, ruled
from tests.runtime.lm.loopback import running

SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def taught(workspace: Workspace) -> Workspace:
    """A workspace with an approved rule and two corrected failures; a third has no correction."""
    with workspace.open() as store:
        cases = failed(store, "POST /mail timed out", "GET /mail timed out", "PUT /mail timed out")
        written = {one.id: f"Tried again at {place}." for place, one in enumerate(cases[:2])}
        ruled(store, RULE, "kept", *cases, correction=written)
    return workspace


def test_nothing_approved_is_said_and_nothing_written(workspace: Workspace) -> None:
    workspace.file(RULE, *workspace.fail())
    before = files_below(workspace.folder)
    done = workspace("export")
    assert (done.code, done.err) == (0, "")
    assert done.out == (
        "nothing to export: no rule is approved and no cause was named by a person; "
        "`dspy-reflex review` is the way there\n"
    )
    assert set(files_below(workspace.folder)) - set(before) <= {"home/store.db-shm", "home/store.db-wal"}
    assert workspace("export", "--json").json["rows"] == {}


def test_what_is_written_is_counted_with_what_is_left_out(taught: Workspace) -> None:
    done = taught("export", "--out", "rows", "--split", 0)
    assert (done.code, done.err) == (0, "")
    assert "        9  sft/train\n" in done.out
    assert "        1  left out: failures of approved rules without a correction that can be used\n" in done.out
    assert "        2  left out: rows of the kind rewarded, which trl has no words for\n" in done.out
    assert done.out.endswith("rows: 16 rows are new, 0 gone; 1 rules\n")
    assert len((taught.folder / "rows" / "data" / "sft" / "train.jsonl").read_text().splitlines()) == 9


def test_json_stands_alone_on_stdout(taught: Workspace) -> None:
    found = taught("export", "--json", "--split", 0, "--format", "bedrock")
    assert found.err == "warning: bedrock wants at least 32 rows to train on; sft has 9\n"
    assert found.json["rows"] == {"sft/train": 9}
    assert (found.json["out"], found.json["format"], found.json["added"], found.json["pushed"]) == (
        "training", "bedrock", 9, None,
    )  # fmt: skip


def test_a_dry_run_says_the_same_and_writes_nothing(taught: Workspace) -> None:
    done = taught("export", "--dry-run", "--split", 0)
    assert "rows would be new" in done.out
    assert not (taught.folder / "training").exists()
    assert done.out.replace("would be", "are") == taught("export", "--split", 0).out


@pytest.mark.parametrize("form", ["llama_factory", "parquet"])
def test_what_is_written_passes_the_check(taught: Workspace, form: str) -> None:
    assert taught("export", "--format", form, "--out", "rows", "--split", 0).code == 0
    for file in sorted((taught.folder / "rows" / "data").rglob("train.*")):
        done = taught.reflex("export", "check", file, "--format", form)
        assert done.code == 0, done.out
        assert done.out.endswith(f" rows, 0 that {form} would not take\n")


def test_malformed_rows_are_listed_with_file_and_line(taught: Workspace) -> None:
    taught("export", "--split", 0)
    file = taught.folder / "training" / "data" / "sft" / "train.jsonl"
    first, *others = file.read_text().splitlines()
    file.write_text("\n".join([first, "{", '{"prompt": []}', *others]) + "\n")
    done = taught.reflex("export", "check", file)
    assert done.code == 2
    assert [line.removeprefix(f"{file}:")[:2] for line in done.out.splitlines()[:-1]] == ["2:", "3:"]
    assert done.out.endswith("\n11 rows, 2 that trl would not take\n")
    found = taught.reflex("export", "check", file, "--json")
    assert (found.code, found.json["rows"], len(found.json["problems"])) == (2, 11, 2)


def test_rules_tasks_and_shares_can_be_chosen(taught: Workspace) -> None:
    with taught.open() as store:
        other = ruled(store, OTHER, "kept", *failed(store, "Sum is wrong"), correction="Added up again.")
    found = taught("export", "--json", "--rule", other.id[:20], "--task", "behave", "--without-rule", 0, "--split", 0)
    assert found.json["rules"] == [other.id]
    assert found.json["tasks"] == {"behave": 4}
    assert OTHER in (taught.folder / "training" / "data" / "sft" / "train.jsonl").read_text()


def test_only_what_is_new_and_since_when(taught: Workspace) -> None:
    assert taught("export", "--out", "first").code == 0
    assert taught("export", "--out", "later", "--since", "2999-01-01").out.startswith("nothing to export")
    with taught.open() as store:
        ruled(store, OTHER, "kept", *failed(store, "Sum is wrong"), correction="Added up again.")
    found = taught("export", "--json", "--out", "second", "--new-since", "first").json
    assert len(found["rules"]) == 1
    assert found["left_out"]["rows that the other export has"] > 0


def test_if_all_is_left_out_that_is_said(workspace: Workspace) -> None:
    with workspace.open() as store:
        ruled(store, RULE, "kept", *failed(store, "x"))
    done = workspace("export", "--task", "behave")
    assert done.out.splitlines()[0] == "nothing to export: everything was left out"
    assert done.code == 0


def test_families_may_be_divided_by_time(taught: Workspace) -> None:
    assert set(taught("export", "--json", "--split", "2001-01-01").json["rows"]) == {
        "preference/validation", "sft/validation", "unpaired/validation",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--format", "csv"), "'csv' is not one of 'trl', 'trl_messages'"),
        (("--since", "yesterday"), "'yesterday' is no time such as 2026-03-01"),
        (("--split", "half"), "'half' is no time such as 2026-03-01"),
        (("--split", "1.5"), "1.5 is not in the range 0<=x<=1"),
        (("--without-rule", "2"), "2.0 is not in the range 0<=x<=1"),
        (("--rule", "prop_none"), "'prop_none': no proposal of this id"),
        (("--task", "sing"), "'sing' is not one of 'behave'"),
        (("--out", "taken"), "taken: is there and is no export of ours; choose another folder"),
        (("--out", "reflex.toml"), "reflex.toml: is there and is no export of ours"),
        (("--out", "."), "is the folder you are in"),
        (("--new-since", "nowhere"), "nowhere: there is no such export"),
        (("--eval-set", "nowhere"), "nowhere: is no eval set"),
        (("--licence", "my: own"), "'my: own' is no licence as the hub spells it"),
        (("--yes",), "--yes says how to push; give --push-to-hub"),
        (("--push-to-hub", "me/mine", "--dry-run"), "--dry-run sends nothing"),
        (("--push-to-hub", "mine"), "'mine' has no owner; give OWNER/NAME"),
        (("check", "nowhere.jsonl"), "nowhere.jsonl: cannot be read"),
        (("check", "taken"), "taken: cannot be read"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(
    workspace: Workspace, arguments: tuple[str, ...], said: str
) -> None:
    (workspace.folder / "taken").mkdir()
    (workspace.folder / "taken" / "thesis.tex").write_text("my life's work")
    done = workspace.reflex("export", *arguments, *(() if "check" in arguments else ("--home", workspace.home)))
    assert said in done.refusal
    assert not (workspace.folder / "training").exists()
    assert (workspace.folder / "taken" / "thesis.tex").read_text() == "my life's work"


def pushed(hub: Hub, taught: Workspace, *arguments: str, stdin: str = "") -> Done:
    """Export in a process of its own whose hub is this one."""
    env = {"HF_ENDPOINT": hub.endpoint, "HF_TOKEN": TOKEN, "HF_HOME": str(taught.folder / ".hf"), "HF_HUB_OFFLINE": "0"}
    done = process(taught.folder, "export", "--home", str(taught.home), *arguments, stdin=stdin, **env)
    assert TOKEN not in done.out + done.err
    return done


def test_a_push_is_private_summed_up_and_clean(taught: Workspace) -> None:
    """After a yes; and what an older version stored unredacted does not leave."""
    with taught.open() as store:
        ruled(store, OTHER, "kept", *failed(store, "Sum is wrong"), correction=f"Used {SECRET}.")
    with running(Hub()) as hub:
        done = pushed(hub, taught, "--push-to-hub", "me/mine", "--json", stdin="y\n")
        (create,) = (one for one in hub.asked if one.what.endswith("/create"))
        assert create.json == {"name": "mine", "organization": "me", "type": "dataset", "visibility": "private"}
        sent = hub.repository.files
        assert sent == files_below(taught.folder / "training")
        assert done.json["pushed"] == f"{hub.endpoint}/datasets/me/mine"
    assert not [name for name, content in sent.items() if SECRET.encode() in content]
    said = " ".join(done.err.split())
    assert "to me/mine on the Hugging Face hub, private:" in said
    assert f"{done.json['rows']['sft/train']} rows sft/train" in said
    assert "taken out of texts: github_token" in said
    assert f"{len(sent)} files, {sum(map(len, sent.values())):,} bytes" in said


def test_a_no_sends_nothing(taught: Workspace) -> None:
    with running(Hub()) as hub:
        done = pushed(hub, taught, "--push-to-hub", "me/mine", stdin="n\n")
        assert hub.paths == []
    assert (done.code, "nothing was sent" in done.err) == (0, True)
    assert (taught.folder / "training" / "manifest.json").is_file()


def test_a_public_repository_gets_nothing(taught: Workspace) -> None:
    with running(Hub(visibility="public")) as hub:
        done = pushed(hub, taught, "--push-to-hub", "me/mine", "--yes")
        assert not hub.repository.files
    assert "me/mine: is there already, and public; nothing was sent" in done.refusal


def test_nothing_to_export_is_nothing_to_push(workspace: Workspace) -> None:
    with running(Hub()) as hub:
        done = pushed(hub, workspace, "--push-to-hub", "me/mine", "--yes")
        assert hub.paths == []
    assert (done.code, done.out.startswith("nothing to export")) == (0, True)


def test_a_program_learns_from_the_loop_and_its_rows_are_exported(workspace: Workspace) -> None:
    """From `log` to `export` by commands alone."""
    told = {"--agent": "mailer", "--task": "Send the report", "--actual": f"timed out, key {SECRET}"}
    words = [word for pair in told.items() for word in pair]
    assert workspace("log", *words).code == 0
    (failure,) = workspace("failures", "list", "--json").json["failures"]
    assert workspace("review", "label", failure["id"], "--cause", "tool_failure", "--by", "ada").code == 0
    rule = workspace.file(RULE, failure["id"])
    (workspace.folder / "right.json").write_text(json.dumps({failure["id"]: "Sent at the second try."}))
    done = workspace("review", "approve", rule.id, "--by", "ada", "--correction", "right.json")
    assert done.code == 0, done.err
    assert workspace("export", "--json").json["tasks"] == {"behave": 4, "classify": 1, "propose": 2, "self_edit": 2}
    assert not [name for name, text in files_below(Path("training")).items() if SECRET.encode() in text]
