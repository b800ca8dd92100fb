"""A runner that answers from a script; for tests and the demo, held to the same conformance kit."""
