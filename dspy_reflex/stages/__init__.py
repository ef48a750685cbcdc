"""The verbs of the loop, one a file."""
