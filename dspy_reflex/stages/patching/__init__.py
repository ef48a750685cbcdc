"""Approved rules into rule files, and out again."""
