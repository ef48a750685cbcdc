"""`python -m dspy_reflex` is `dspy-reflex`."""

from dspy_reflex.cli.main import main

if __name__ == "__main__":
    main()
