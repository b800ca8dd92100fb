"""Test worlds: simulated engines and graphs, runs without agents, and what many tests share."""
