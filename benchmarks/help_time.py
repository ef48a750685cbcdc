"""Seconds that `dspy-reflex --help` takes, warm. Goal: 0.3."""

from __future__ import annotations

from processes import costs, parser, python, show

HELP = "import sys; sys.argv = ['dspy-reflex', '--help']; from dspy_reflex.cli.main import main; main()"
"""What the console script does."""


def main() -> None:
    """Measure and print."""
    options = parser(__doc__).parse_args()
    commands = {"bare": python("pass"), "help": python(HELP), "dspy": python("import dspy")}
    found = costs(commands, options.runs)
    result = {
        "benchmark": "help_time",
        "runs": options.runs,
        "bare_s": found["bare"].seconds,
        "help_s": found["help"].seconds,
        "help_mib": found["help"].above(found["bare"]).peak_mib,
        "against_import_dspy": found["help"].seconds / found["dspy"].seconds,
    }
    show(result, options.json)


if __name__ == "__main__":
    main()
