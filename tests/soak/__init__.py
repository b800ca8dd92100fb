"""A soak: runs of the three demos on one Postgres database, with two workers that are disturbed all the time."""
