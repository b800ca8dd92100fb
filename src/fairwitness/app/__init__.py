"""What a person can ask for: settings, wiring, read models, and the services the faces call."""
