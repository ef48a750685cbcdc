"""Every error this package raises on purpose, named by the boundary that was crossed.

The message of each is one sentence for the person at the keyboard: what is wrong, where (file and line), and what to
do next. The command line prints it and exits with `EXIT_BAD_INPUT`; a library caller catches `ReflexError`.
"""

from __future__ import annotations

EXIT_BAD_INPUT = 2
"""Exit code of every command that was given something it cannot use."""


class ReflexError(Exception):
    """Root of all errors raised on purpose."""


class ConfigError(ReflexError):
    """An option, environment variable or settings file cannot be used."""


class TaxonomyError(ReflexError):
    """A taxonomy file cannot be read, or a label is not in it."""


class DatasetError(ReflexError):
    """Labelled or unlabelled failures cannot be read; says file and line."""


class ProgramError(ReflexError):
    """A compiled program is missing, damaged, or made for something else."""


class RenderError(ReflexError):
    """A prompt cannot be rendered, or a program uses a type that the light runtime does not render."""


class AnswerError(ReflexError):
    """A model answered, but not in the form asked for. Counted apart, and a miss."""


class RefusalError(AnswerError):
    """A model declined to answer. Counted apart, and a miss."""


class ModelError(ReflexError):
    """A model cannot be used."""


class ModelNotConfiguredError(ModelError):
    """The model's name, key or endpoint is missing."""


class ModelUnavailableError(ModelError):
    """The model could not be reached, after retries. An outage: never scored."""


class BudgetError(ReflexError):
    """The money or calls that the user allowed are spent."""


class JournalError(ReflexError):
    """The record of a compile's answers cannot be read or written."""


class RunError(ReflexError):
    """A run folder is missing, unfinished or damaged; says which file."""


class ExportError(ReflexError):
    """Training rows cannot be written, or are not what their format says."""


class StoreError(ReflexError):
    """The store cannot be opened, read or written, or does not allow what was asked."""


class ReviewError(ReflexError):
    """A review does not say who and why, or approves what may not be approved."""


class TargetError(ReflexError):
    """A rule file cannot be read or written, or was changed by hand where this tool writes."""


class HandEditError(TargetError):
    """The rules that this tool owns in a file are not as it wrote them."""

    def __init__(self, message: str, diff: str) -> None:
        """Say which file, and show what was written, what stands there, and what would be written, as unified diffs."""
        super().__init__(message)
        self.diff = diff


class CompileError(ReflexError):
    """A compile could not be run, or changed nothing."""


class BenchmarkError(ReflexError):
    """A benchmark would not be honest: rows seen in training, or no rows to learn a baseline from."""


class MissingExtraError(ReflexError):
    """A command needs packages that the base install leaves out."""

    def __init__(self, what: str, extra: str) -> None:
        """Name what was asked for and the extra that brings it."""
        super().__init__(f"{what} needs the extra [{extra}]: pip install 'dspy-reflex[{extra}]'")
