"""What the runs of all three workflows share: worktrees of readers, state files, ledger heads, call outcomes."""
