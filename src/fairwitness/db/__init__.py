"""Connections, transactions and migrations for SQLite and Postgres; independent of the domain."""
