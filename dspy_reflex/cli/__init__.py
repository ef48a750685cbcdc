"""The command line: thin, one file per group of verbs, and `--json` on every verb."""
