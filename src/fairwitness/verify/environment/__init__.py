"""What a check needs to run that is not in the tree: interpreter, dependencies, tools; and proof of what was loaded."""
