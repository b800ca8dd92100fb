"""The task executor that all three workflows use: a loop in one re-runnable step."""
