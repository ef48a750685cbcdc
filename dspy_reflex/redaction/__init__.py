"""Secrets and personal data are taken out of a text before anything writes it down."""
