"""Asking models: several at a time, within a budget, and what it cost."""
