"""The deterministic bodies of feature, autopilot and forge. Their only effects are steps."""
