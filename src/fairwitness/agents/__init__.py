"""Roles as data, prompts, the toolset under one policy, and the backends that speak to real agents."""
