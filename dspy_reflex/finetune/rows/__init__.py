"""Rows out of what the store has to teach, one file for each thing that can be learned."""
