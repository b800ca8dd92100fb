"""Feature runs: their facts, decisions, agent calls, evidence, documents, commit and rollback."""
