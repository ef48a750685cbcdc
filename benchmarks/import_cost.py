"""What `import dspy_reflex` costs against `import dspy`, above a bare interpreter. Goal: a tenth."""

from __future__ import annotations

from processes import costs, parser, python, show


def main() -> None:
    """Measure and print."""
    options = parser(__doc__).parse_args()
    commands = {"bare": "pass", "dspy_reflex": "import dspy_reflex", "dspy": "import dspy"}
    found = costs({name: python(code) for name, code in commands.items()}, options.runs)
    ours, theirs = (found[name].above(found["bare"]) for name in ("dspy_reflex", "dspy"))
    result = {
        "benchmark": "import_cost",
        "runs": options.runs,
        "bare_s": found["bare"].seconds,
        "dspy_reflex_s": ours.seconds,
        "dspy_s": theirs.seconds,
        "time_ratio": ours.seconds / theirs.seconds,
        "dspy_reflex_mib": ours.peak_mib,
        "dspy_mib": theirs.peak_mib,
        "memory_ratio": ours.peak_mib / theirs.peak_mib,
    }
    show(result, options.json)


if __name__ == "__main__":
    main()
