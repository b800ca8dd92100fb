"""The deterministic bodies of feature, autopilot and forge; they meet the world only through steps."""
