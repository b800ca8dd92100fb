"""The ll tier: Landlock and seccomp by a small supervisor."""
