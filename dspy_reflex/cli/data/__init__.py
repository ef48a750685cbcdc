"""`dspy-reflex data`: one file per verb."""
