"""Is the compiled program better, than what, and how sure is that? Programs run here through the light runtime only."""
