"""The tools that an agent of ours has: offered by role, judged by one policy, run by us."""
