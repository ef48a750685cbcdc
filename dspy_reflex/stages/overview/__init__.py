"""How things stand, and what is to go."""
