"""The models of a compile: journaled, counted, held to a budget, and dressed for DSPy."""
