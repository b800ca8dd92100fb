"""What the runs of all three workflows share: read-only worktrees, state files, call outcomes."""
