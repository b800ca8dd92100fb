"""What a repository offers to be checked by, read from its files alone: nothing of it is run, imported or believed."""
