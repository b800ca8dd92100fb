"""The body of forge: a task graph run by a captain, workers and refineries."""
