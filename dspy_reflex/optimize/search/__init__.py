"""What optimizers search with: demos, instructions, candidates, and who of them is best."""
