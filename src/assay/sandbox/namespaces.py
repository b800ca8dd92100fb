"""The ns tier: Linux namespaces through bubblewrap."""
