"""What can be wrong or suspicious with labelled failures: one check a file, all run by `run.validate`."""
