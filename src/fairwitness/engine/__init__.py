"""Durable execution on DBOS; only `dbos_library` knows that library."""
