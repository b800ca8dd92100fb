"""Runs recorded in a ledger: opened with their log and files, and changed by a person (pause, retry, resume)."""
