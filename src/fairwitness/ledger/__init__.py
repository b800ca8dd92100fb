"""The evidence ledger: append-only tables, their hash chain, and the tallies that gates evaluate."""
