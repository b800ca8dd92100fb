"""The scripted world of the autopilot demo: a small library, a roadmap for it, and a recorded team that follows it."""
