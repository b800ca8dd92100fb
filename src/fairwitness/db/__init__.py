"""Connections, transactions and migrations for SQLite and Postgres; knows no domain word."""
