"""Do TRL's trainers take exported rows, and learn from them? SFT, DPO and KTO on a tiny model with random weights.

    make trainers                               writes experiments/trainers, in a few minutes

A store gets corrected failures and approved rules, `export --format trl` writes a folder, and `datasets.load_dataset`
reads it. The model has two layers and the tokenizer knows bytes only; both are made here, nothing is downloaded. What
this shows is that real trainers take the rows and that their loss falls; a model of this size learns nothing of use.
Rows of the two other formats for TRL are read by its own `data_utils`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

from dspy_reflex.clock import now
from dspy_reflex.files import write_atomic
from dspy_reflex.finetune.formats.registry import format_of
from dspy_reflex.finetune.guard import Guard
from dspy_reflex.finetune.plan import Plan
from dspy_reflex.ids import new_id
from dspy_reflex.records.diagnosis import Diagnosis
from dspy_reflex.records.proposal import Proposal
from dspy_reflex.records.review import FiledProposal, Review
from dspy_reflex.stages.export import export
from dspy_reflex.store import diagnoses, outcomes, proposals
from dspy_reflex.store.diagnoses import Diagnosed
from dspy_reflex.store.schema import micros
from dspy_reflex.store.store import Store

OUT = Path("experiments/trainers")
FORMS = ("trl", "trl_messages", "trl_text")
KINDS = {"SFTTrainer": "sft", "DPOTrainer": "preference", "KTOTrainer": "unpaired"}
FAILURES, STEPS, ENDS = 24, 40, 5
"""How many failures are corrected, how many steps are trained, and of how many the loss is averaged at either end."""
TEMPLATE = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}</s>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
RULE = "When a call is throttled, wait as long as the answer says and try again, at most three times."


def main() -> None:
    """Export, train three times, write."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--out", type=Path, default=OUT)
    options = made.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        exported(Path(folder))
        accepted = {form: rendered(Path(folder) / form) for form in FORMS}
        losses = {name: trained(name, Path(folder)) for name in KINDS}
    ends = {name: (round(fmean(told[:ENDS]), 4), round(fmean(told[-ENDS:]), 4)) for name, told in losses.items()}
    versions = {name: version(name) for name in ("trl", "torch", "transformers")}
    result = {
        "benchmark": "trainers", "versions": versions, "rendered": accepted, "steps": STEPS, "loss_first_last": ends,
        "losses": losses,
    }  # fmt: skip
    write_atomic(options.out / "result.json", (json.dumps(result, indent=1) + "\n").encode())
    write_atomic(options.out / "report.md", report(result).encode())
    sys.stdout.write(report(result))
    if any(last >= first for first, last in ends.values()):
        raise SystemExit("a loss did not fall")


def exported(folder: Path) -> None:
    """A folder of rows in each of TRL's formats."""
    with Store(f"sqlite:///{folder / 'store.db'}") as store:
        _teach(store)
        for form in FORMS:
            plan = Plan(tasks=("behave",), split=0)
            export(store, plan, Guard([]), format_of(form), folder / form, licence="mit")


def rendered(folder: Path) -> int:
    """How many rows TRL reads: conversational ones go through the chat template, plain ones have the words for it."""
    trl: Any = import_module("trl.data_utils")
    tokenizer = _tokenizer()
    n = 0
    for file in sorted((folder / "data").rglob("*.jsonl")):
        for row in map(json.loads, file.read_text().splitlines()):
            talks = folder.name != "trl_text"
            if trl.is_conversational(row) is not talks:
                raise SystemExit(f"{file}: TRL takes a row for what it is not")
            told = trl.apply_chat_template(row, tokenizer) if talks else row
            n += all(isinstance(one, str | bool) for one in told.values())
    return n


def trained(name: str, folder: Path) -> list[float]:
    """The loss of every step of one trainer."""
    trl: Any = import_module("trl")
    datasets: Any = import_module("datasets")
    kind = KINDS[name]
    rows = datasets.load_dataset(str(folder / "trl"), kind, split="train", cache_dir=str(folder / "cache"))
    settings: dict[str, Any] = {
        "output_dir": str(folder / name), "max_steps": STEPS, "per_device_train_batch_size": 4, "learning_rate": 1e-3,
        "logging_steps": 1, "report_to": [], "use_cpu": True, "save_strategy": "no", "seed": 0, "max_length": 256,
        "bf16": False, "disable_tqdm": True,
    }  # fmt: skip
    config = getattr(trl, name.replace("Trainer", "Config"))(**settings)
    others = {} if kind == "sft" else {"ref_model": _model()}
    trainer = getattr(trl, name)(
        model=_model(), args=config, train_dataset=rows, processing_class=_tokenizer(), **others
    )
    trainer.train()
    return [float(one["loss"]) for one in trainer.state.log_history if "loss" in one]


def report(result: Mapping[str, Any]) -> str:
    """For people."""
    rows = [f"| {name} | {first:.3f} | {last:.3f} |" for name, (first, last) in result["loss_first_last"].items()]
    made = ", ".join(f"{name} {one}" for name, one in result["versions"].items())
    read = ", ".join(f"{n} of `{form}`" for form, n in result["rendered"].items())
    about = [
        *(__doc__ or "").strip().splitlines(),
        "",
        f"{STEPS} steps; {made}. Rows read by `trl.data_utils`: {read}.",
    ]
    table = [f"| trainer | loss, first {ENDS} steps | last {ENDS} |", "| --- | --- | --- |", *rows]
    return "\n".join(["# Trainers", "", *about, "", *table]) + "\n"


def _teach(store: Store) -> None:
    """Failures, a rule that was approved against them, and what should have been done in each."""
    events = [_event(place) for place in range(FAILURES)]
    ids = tuple(one["id"] for one in events)
    with store.write() as connection:
        outcomes.take_in(connection, events)
        found = outcomes.failures_of(connection, ids)
        said = {"root_cause": "tool_failure", "confidence": 0.9, "needs_review": False, "symptom": "rate_limit"}
        said |= {"signature": "<num>", "program": "root_cause@0", "model": "offline", "score": "unmeasured"}
        diagnoses.add(
            connection, [Diagnosed(one, Diagnosis.model_validate({**said, "failure_id": one.id})) for one in found]
        )
        filed = _filed(ids)
        proposals.file(connection, filed, actor="trainers")
        proposals.move(connection, filed, "approved", actor="a person", action="approve")
        correction = {one: f"Waited {place} s, tried again, report {place} is sent." for place, one in enumerate(ids)}
        told = {"action": "approve", "before": RULE, "rule": RULE, "correction": correction}
        review = {"id": new_id("rev"), "proposal_id": filed.id, "at": now(), "by": "a person", **told}
        proposals.add_review(connection, Review.model_validate(review))


def _event(place: int) -> dict[str, Any]:
    told = {
        "task": f"Send report {place}.",
        "expected_outcome": None,
        "actual_outcome": f"429, report {place} was dropped.",
    }
    return {"id": f"evt_{place:04}", "at": micros(now()), "agent_id": "agent", "ok": False, "severity": "high", **told}


def _filed(ids: tuple[str, ...]) -> FiledProposal:
    made = {"root_cause": "tool_failure", "component": "TOOLS", "rule": RULE, "program": "rule@0", "model": "offline"}
    proposal = Proposal.model_validate({"id": "prop_0", "failure_ids": ids, "score": "unmeasured", **made})
    where = {"agent_id": "*", "symptom": "rate_limit", "severity": "high", "confidence": 0.9, "file": "TOOLS.md"}
    told = {"id": "prop_trainers", "at": now(), "base": "0" * 64, "rule": RULE, "proposal": proposal, **where}
    return FiledProposal.model_validate(told)


def _tokenizer() -> Any:
    """One token a byte, and one for each role."""
    made_of: Any = import_module("tokenizers")
    pieces = made_of.pre_tokenizers.ByteLevel
    alphabet = {char: place for place, char in enumerate(sorted(pieces.alphabet()))}
    made = made_of.Tokenizer(made_of.models.BPE(vocab=alphabet, merges=[]))
    made.pre_tokenizer = pieces(add_prefix_space=False)
    made.decoder = made_of.decoders.ByteLevel()
    special = {"eos_token": "</s>", "pad_token": "<pad>"}
    roles = ["<system>", "<user>", "<assistant>"]
    fast: Any = import_module("transformers").PreTrainedTokenizerFast
    tokenizer = fast(tokenizer_object=made, additional_special_tokens=roles, **special)
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def _model() -> Any:
    """Two layers, the same random weights every time."""
    transformers: Any = import_module("transformers")
    import_module("torch").manual_seed(0)
    tokenizer = _tokenizer()
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=512, pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
        bos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


if __name__ == "__main__":
    main()
