"""Events on their way into the store: written without waiting, kept through a kill, read in batches.

Its modules are imported by name: a reader needs none of what a writer does. Standard library and orjson alone.
"""
