"""Diagnosed failures in, proposed rules out."""
