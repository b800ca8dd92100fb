"""What crosses rooms when an agent is called: roles, briefs, outcomes, profiles, settings, recordings."""
