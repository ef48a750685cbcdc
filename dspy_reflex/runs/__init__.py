"""Run folders, read: what a compile left behind, as a report, a line in a list, or one side of a comparison."""
