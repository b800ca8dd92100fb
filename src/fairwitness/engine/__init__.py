"""Durable execution: the one module that knows DBOS."""
