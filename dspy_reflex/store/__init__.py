"""What happened and what was decided: outcomes, diagnoses, proposals, reviews, patches, lessons, and who moved what."""
