"""Whether rules helped."""
