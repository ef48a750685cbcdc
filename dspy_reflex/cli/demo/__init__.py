"""The loop, tried out on ten failures of an agent that does not exist."""
