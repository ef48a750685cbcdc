"""What can be seen in a rule's text without understanding it: its words, its shape, and what it copied."""
