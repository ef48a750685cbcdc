"""Questions that are answered by a key. All of it on stderr; stdout is for the result."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click

from dspy_reflex.errors import ConfigError

QUIT_KEYS = ("q", "\x03", "\x04")


def need_terminal(command: str) -> None:
    """Stop where nobody can press a key.

    Raises:
        ConfigError: Standard input is not a terminal.
    """
    if not sys.stdin.isatty():
        raise ConfigError(f"{command} asks by keys and needs a terminal; run it in one")


def say(text: str = "") -> None:
    """One line for the person at the keyboard."""
    click.echo(text, err=True)


def ask(question: str, choices: Mapping[str, str]) -> str:
    """Ask until one of the keys is pressed; the key is returned. Enter is the key "".

    Args:
        question: What is asked.
        choices: Key to what it means, in the order shown.
    """
    shown = "  ".join(f"[{key or 'Enter'}] {meaning}" for key, meaning in choices.items())
    say(f"{question}: {shown}")
    while True:
        key = click.getchar()
        key = "" if key in "\r\n" else key
        if key in QUIT_KEYS and "q" in choices:
            return "q"
        if key in choices:
            say(f"  {choices[key]}")
            return key
