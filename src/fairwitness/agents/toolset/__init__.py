"""The tools of agents that Fair Witness runs itself: offered by role, judged by one policy."""
