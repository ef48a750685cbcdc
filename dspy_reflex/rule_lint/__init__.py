"""What a rule must be before a person may approve it, and what can be seen in its text without understanding it."""
