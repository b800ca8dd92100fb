"""The scripted world of the feature demo: a small library, a request for it, and the recorded team that meets it."""
