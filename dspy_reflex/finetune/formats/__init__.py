"""What trainers take, one file each. `registry.NAMES` is the list."""
