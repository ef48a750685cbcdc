"""A labelled set as a folder that Hugging Face reads: split files, manifest, and a datasheet as its card."""
