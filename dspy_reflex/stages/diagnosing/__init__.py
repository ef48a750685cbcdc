"""Failures in, diagnoses out: of files, of the store, and by people."""
