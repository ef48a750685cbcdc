"""Approved rules as training data: rows with their lineage, and one file a format that trainers take."""
