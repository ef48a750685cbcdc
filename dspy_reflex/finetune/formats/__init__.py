"""What trainers take, one file each. `FORMATS` is the list."""
