"""Runs of the three workflows: each step acts on the world, can be repeated after a crash, and adopts what it finds."""
