"""Search over settings: an Optuna study in shared storage, each trial one compile, any number of workers."""
