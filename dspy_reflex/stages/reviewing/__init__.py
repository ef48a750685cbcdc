"""What people, or policies of theirs, say of proposals, and what is learned from it."""
