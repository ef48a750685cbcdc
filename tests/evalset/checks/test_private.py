"""Secrets and personal data are found, and what looks like them is not."""

from __future__ import annotations

import pytest

from dspy_reflex.evalset.checks.private import private
from tests.evalset.checks.sets import brief, evalset, told

SECRETS = [
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "sk-ant-" + "api03-abcdefghijklmnopqrstuvwxyz",
    "sk-proj-" + "abcdefghijklmnopqrstuvwxyz",
    "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "postgres://admin:" + "hunter2@db/prod",
    "-----BEGIN RSA " + "PRIVATE KEY-----",
    "Authorization: Bearer " + "abcdefghijklmnopqrstuvwxyz012345",
]
PERSONAL = [
    "write to jane@acme-corp.io",
    "call +49 30 9018 2000",
    "paid with 4111 1111 1111 1111",
    "DE89 3704 0044 0532 0130 00",
]
HARMLESS = [
    "commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "request 123e4567-e89b-12d3-a456-426614174000",
    "mail to ops@example.com, cc legal@team.example.org",
    "call +1 202 555 0143",
    "order 4111111111111112, run 20261121094500",
    "GB00 BANK 0000 0000 0000 00",
    "sk-ant-... (cut)",
    "npm WARN deprecated glob@7.2.3 and httpkit@v2.0.0",
]


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_is_an_error_and_is_never_repeated(text: str) -> None:
    """A report that quotes a key is one more place to leak it."""
    (found,) = private(evalset(told(1, "red", f"log: {text} end")))
    assert brief(found) == ("secret", "error", "a.jsonl:1")
    assert text not in found.text


@pytest.mark.parametrize("text", PERSONAL)
def test_a_persons_contact_is_a_warning(text: str) -> None:
    """Invented ones look the same, so a person decides."""
    (found,) = private(evalset(told(1, "red", text)))
    assert brief(found) == ("personal-data", "warning", "a.jsonl:1")


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_one_is_left_alone(text: str) -> None:
    """Logs are full of hashes, ids and reserved addresses."""
    assert not list(private(evalset(told(1, "red", text))))


def test_the_rule_is_searched_as_well() -> None:
    """It ends up in a rule file."""
    assert list(private(evalset(told(1, "red", "a", reference_rule=f"use {SECRETS[0]}"))))
