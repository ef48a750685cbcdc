"""Runs a compiled program without DSPy: read the artefact, render the prompt, ask a model, parse the answer.

`artifact`, `inputs`, `render`, `parse` and the offline model are standard library alone, plain dicts in and out;
`program` puts the typed records on top.
"""
