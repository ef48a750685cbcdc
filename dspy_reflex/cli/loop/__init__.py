"""Commands that work on the store: record, look, keep."""
