"""Feature runs without agents: the real decisions on a real ledger, from scripted answers."""
