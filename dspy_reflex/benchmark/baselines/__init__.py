"""What a compiled program has to beat: answers that need no language model."""
