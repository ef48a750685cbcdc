"""The models a compiled program can run on, each in one file, behind one small interface."""
