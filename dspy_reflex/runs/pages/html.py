"""A document as one HTML file that loads nothing: pictures are inside it, scripts and addresses are forbidden."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dspy_reflex.errors import MissingExtraError
from dspy_reflex.runs.pages.blocks import Document, kind_of
from dspy_reflex.untrusted import neutralise

TEMPLATE = "page.html.j2"


def render(document: Document, pictures: Mapping[str, bytes]) -> str:
    """The whole document. Every text in it may be hostile, and is escaped.

    Args:
        document: What to show.
        pictures: Name to file of each of its pictures.

    Raises:
        MissingExtraError: Jinja2 is not installed.
    """
    encoded = {name: base64.b64encode(content).decode() for name, content in pictures.items()}
    return _environment().get_template(TEMPLATE).render(document=document, pictures=encoded)


def _environment() -> Any:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError:
        raise MissingExtraError("a report", "compile") from None
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(plain=neutralise, kind_of=kind_of, block=lambda block: type(block).__name__)
    return environment
