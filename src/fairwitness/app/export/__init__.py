"""The roles of the feature pipeline as files that other tools read: definitions, references, an overview, a skill."""
