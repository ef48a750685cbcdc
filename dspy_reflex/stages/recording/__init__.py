"""What agents did, on its way in: recorded, or out of files."""
