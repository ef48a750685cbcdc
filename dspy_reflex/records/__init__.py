"""The nouns: frozen, versioned records with no input or output of their own."""
