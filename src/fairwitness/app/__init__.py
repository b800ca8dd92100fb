"""The application layer: settings, assembly, views, and the actions that the command line calls."""
