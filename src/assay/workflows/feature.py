"""The body of the feature pipeline, steps 0 to 9."""
