"""What was seen, in two forms that need no model: a symptom from a closed list, and a masked signature."""
