"""Task graphs: their event log, worktrees, checks and merges."""
