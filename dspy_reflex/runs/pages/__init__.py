"""A document of texts, tables, pictures and diffs, and its three faces: Markdown, HTML and the terminal."""
