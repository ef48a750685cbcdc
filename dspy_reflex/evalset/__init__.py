"""Labelled failures: what a row is, how files become rows, and how rows are split without dividing a family."""
