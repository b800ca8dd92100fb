"""The roles, the agents that play them, and a trial of one role on a bundled repository."""
