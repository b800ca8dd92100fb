"""What `fairwitness verify` asks of a repository and what it is told: checks, results by identity, and the report."""
