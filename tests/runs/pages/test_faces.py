"""Whatever stands in a document, no face of it obeys it."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_reflex.runs.pages import html, markdown, terminal
from dspy_reflex.runs.pages.blocks import Block, Diff, Document, Picture, Section, Table, Text, kind_of
from dspy_reflex.untrusted import neutralise
from tests.runs.folders import HOSTILE

TAGS = {
    "html", "head", "meta", "title", "style", "body", "section", "h1", "h2", "p", "div", "table", "thead", "tbody",
    "tr", "th", "td", "img", "pre", "span",
}  # fmt: skip
PNG = {"p.png": b"\x89PNG"}


class Page(HTMLParser):
    """The tags, attributes and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def document(text: str) -> Document:
    """One with a text in every place that has one."""
    picture = Picture("p.png", text, lambda: PNG["p.png"])
    blocks: tuple[Block, ...] = (
        Text(text),
        Table((text,), ((text,),)),
        picture,
        Diff.of(text, f"{text}!", (text, text)),
    )
    return Document(text, (Section(text, blocks),))


@given(st.one_of(st.just(HOSTILE), st.text()))
def test_a_page_has_no_tags_but_its_own(text: str) -> None:
    """No script, no link, no picture but those inside it, and the text is there to read."""
    page = Page(html.render(document(text), PNG))
    assert page.tags <= TAGS
    assert {value for name, value in page.attributes if name in ("src", "href")} == {"data:image/png;base64,iVBORw=="}
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert neutralise(text) in page.text


def test_a_page_forbids_scripts_and_addresses() -> None:
    """Should anything get in all the same, a browser would not run or load it."""
    policies = [value for name, value in Page(html.render(document("x"), PNG)).attributes if name == "content"]
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline'" in policies


@given(st.one_of(st.just(HOSTILE), st.text(alphabet="`~ab\n")))
def test_no_line_of_a_diff_closes_its_fence(text: str) -> None:
    """The fence is longer than any run of backticks inside."""
    diff = Diff.of("", text, ("before", "after"))
    lines = markdown.render(Document("d", (Section("s", (diff,)),))).splitlines()[4:]
    fence = lines[0].removesuffix("diff")
    assert set(fence) == {"`"}
    assert not any(fence in line for line in lines[1:-1])
    assert lines[-1] == fence


def test_a_table_stays_a_table_in_markdown() -> None:
    """One line a row, and no markup in a cell."""
    lines = markdown.render(Document("d", (Section("s", (Table(("a",), ((HOSTILE,),)),)),))).splitlines()
    assert len(lines) == 7
    assert r"\<script\>" in lines[-1]


def test_a_terminal_shows_escape_sequences_and_obeys_none(capsys: pytest.CaptureFixture[str]) -> None:
    """Nor does it read text as markup."""
    terminal.show(document(f"{HOSTILE} [bold]:smile:[/bold]"))
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u241b[31m" in out
    assert "[bold]:smile:[/bold]" in out


def test_a_long_line_of_a_diff_is_cut_and_says_so() -> None:
    """A cue sheet is one line of many thousand characters."""
    added = [line for line in Diff.of("a", "a\n" + "x" * 5000, ("before", "after")).lines if kind_of(line) == "added"]
    (line,) = added
    assert line.endswith("… (5001 characters)")
    assert len(line) < 400


def test_equal_texts_have_no_diff() -> None:
    """Not even its head."""
    assert Diff.of(HOSTILE, HOSTILE, ("before", "after")).lines == ()
