"""Where a rule is written and read back, one file per format."""
