"""`dspy-reflex apply`, `diff`, `revert`, `rules` and `verify`: what becomes of approved rules."""
