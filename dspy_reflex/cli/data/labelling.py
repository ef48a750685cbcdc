"""`dspy-reflex data label`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dspy_reflex.cli.common import FILE, as_json, lm_option, print_json, read_failures, skip_bad_option, taxonomy_option
from dspy_reflex.cli.data.terminal import (
    BACK_KEY,
    NOTHING_KEY,
    Move,
    by_id,
    label_keys,
    read_labelled,
    show,
    write_rows,
)
from dspy_reflex.cli.keys import ask, need_terminal, say
from dspy_reflex.errors import DatasetError
from dspy_reflex.evalset.annotate import Annotation, unlabelled, with_vote
from dspy_reflex.evalset.labelled import LabelledFailure

if TYPE_CHECKING:
    from dspy_reflex.records.diagnosis import Diagnosis
    from dspy_reflex.records.taxonomy import Taxonomy

COMPONENT_KEYS = {"s": "SOUL", "g": "AGENTS", "t": "TOOLS"}
NO_ANSWER = {"": "none"}
BACK = {BACK_KEY: "back"}


@click.command("label")
@click.argument("file", type=FILE)
@click.option("--by", required=True, help="Your name; two people label the same file under two names.")
@click.option("--out", type=FILE, required=True, help="Labelled file; an existing one is gone on with.")
@click.option("--program", "path", type=FILE, help="Program that orders and suggests. Default: the current one.")
@lm_option
@taxonomy_option
@skip_bad_option
@as_json
def command(
    file: Path, by: str, out: Path, path: Path | None, lm: str, taxonomy: str, skip_bad: bool, as_json: bool
) -> None:  # fmt: skip
    """Label the failures in FILE one by one: cause, second choice, component, evidence.

    The failures that the program is least sure of come first; what it would say is shown on [?] only, and what another
    annotator said is never shown. Every answer is written at once; quit and start again at any time.
    """
    need_terminal("data label")
    from dspy_reflex.taxonomies.load import load_taxonomy

    labels = load_taxonomy(taxonomy)
    rows = _rows(out, labels, by_id(map(unlabelled, read_failures(file, say, skip_bad=skip_bad))))
    asked = [row for row in rows.values() if by not in {vote.annotator for vote in row.votes}]
    _Session(out, by, labels, rows, _suggestions(asked, labels, path, lm)).run()
    done = sum(by in {vote.annotator for vote in row.votes} for row in rows.values())
    if as_json:
        print_json({"out": str(out), "annotator": by, "labelled": done, "left": len(rows) - done})
    else:
        click.echo(f"{out}: {done} labelled by {by}, {len(rows) - done} left")


def _rows(out: Path, labels: Taxonomy, blank: dict[str, LabelledFailure]) -> dict[str, LabelledFailure]:
    """What is labelled already, and what is not.

    Raises:
        DatasetError: The labelled file has labels that are nobody's votes, or another failure under the same id.
    """
    rows = read_labelled(out, labels)
    if other := next((row for row in rows.values() if not row.votes), None):
        raise DatasetError(f"{other.where}: a label without votes; give another --out, or it would be lost")
    for name, one in blank.items():
        if rows.setdefault(name, one).row_hash != one.row_hash:
            raise DatasetError(f"{out}: id {name!r} is another failure there; give each failure its own id")
    return rows


def _suggestions(rows: list[LabelledFailure], labels: Taxonomy, path: Path | None, lm: str) -> dict[str, Diagnosis]:
    """What the program would say; nothing where there is no program for these labels."""
    from dspy_reflex.errors import ProgramError
    from dspy_reflex.runtime.program import load_program

    try:
        program = load_program("root_cause", path=path, lm=lm, labels=labels.labels)
    except ProgramError:
        if path:
            raise
        return {}
    return {row.id: program(row.failure) for row in rows}


@dataclass
class _Session:
    """One annotator at one file."""

    out: Path
    by: str
    labels: Taxonomy
    rows: dict[str, LabelledFailure]
    suggested: dict[str, Diagnosis]

    def run(self) -> None:
        """Ask about one failure after the other until all are labelled, skipped, or the annotator quits."""
        queue = self._queue()
        before: dict[str, LabelledFailure] = {}
        place = 0
        while place < len(queue):
            name = queue[place]
            show(self.rows[name], f"{place + 1}/{len(queue)}")
            said = self._asked(name)
            if said is Move.QUIT:
                return
            if isinstance(said, Annotation):
                before[name] = self.rows[name]
                self._keep(name, with_vote(self.rows[name], self.by, said))
                place += 1
            elif said is Move.SKIP:
                place += 1
            elif place:
                place -= 1
                if queue[place] in before:  # as it was, with what others had decided; a skipped one has not changed
                    self._keep(queue[place], before.pop(queue[place]))

    def _queue(self) -> list[str]:
        """What this annotator has not labelled, least certain first."""
        left = [name for name, row in self.rows.items() if self.by not in {vote.annotator for vote in row.votes}]
        return sorted(left, key=lambda name: self.suggested[name].confidence if name in self.suggested else 0.0)

    def _keep(self, name: str, row: LabelledFailure) -> None:
        self.rows[name] = row
        write_rows(self.out, {key: one for key, one in self.rows.items() if one.votes})

    def _asked(self, name: str) -> Annotation | Move:
        """One failure, question by question; back at the first question is back to the failure before."""
        steps: tuple[Callable[[str, Annotation], Annotation | Move], ...] = (
            self._cause, self._second, self._component, self._evidence,
        )  # fmt: skip
        said = [Annotation(None)]
        while len(said) <= len(steps):
            answer = steps[len(said) - 1](name, said[-1])
            if isinstance(answer, Annotation):
                said.append(answer)
            elif answer is Move.BACK and len(said) > 1:
                said.pop()
            else:
                return answer
        return said[-1]

    def _cause(self, name: str, said: Annotation) -> Annotation | Move:
        keys = label_keys(self.labels)
        moves: dict[str, Any] = {"s": Move.SKIP, BACK_KEY: Move.BACK, "q": Move.QUIT}
        help_key = {"?": "suggestion"} if name in self.suggested else {}
        choices = {
            **keys,
            NOTHING_KEY: "nothing to blame",
            **help_key,
            **{key: move.value for key, move in moves.items()},
        }
        while (key := ask("root cause", choices)) == "?":
            one = self.suggested[name]
            say(f"  {one.program}: {one.root_cause} ({one.confidence:.0%}), then {one.second}")
        return moves[key] if key in moves else replace(said, root_cause=keys.get(key))

    def _second(self, _: str, said: Annotation) -> Annotation | Move:
        keys = {key: label for key, label in label_keys(self.labels).items() if label != said.root_cause}
        key = ask("second choice", {**keys, **NO_ANSWER, **BACK})
        return Move.BACK if key == BACK_KEY else replace(said, second=keys.get(key))

    def _component(self, _: str, said: Annotation) -> Annotation | Move:
        key = ask("a rule would belong in", {**COMPONENT_KEYS, **NO_ANSWER, **BACK})
        chosen: Any = COMPONENT_KEYS.get(key)
        return Move.BACK if key == BACK_KEY else replace(said, component=chosen)

    def _evidence(self, name: str, said: Annotation) -> Annotation | Move:
        """Quotes, a line each, that must be in the text; an empty line ends them."""
        from dspy_reflex.untrusted import quoted_in

        shown = "\n".join(self.rows[name].inputs.values())
        quotes: list[str] = []
        say(f"evidence, word for word, a line each; Enter ends, {BACK_KEY} goes back:")
        while quote := click.prompt("", default="", show_default=False, prompt_suffix="> ", err=True).strip():
            if quote == BACK_KEY:
                return Move.BACK
            if quoted_in(quote, shown):
                quotes.append(quote)
            else:
                say("  that is not in the text, or too short; copy it word for word")
        return replace(said, evidence=tuple(quotes))
