"""Find the checks of a repository by reading its files; nothing of it is run or imported. Begin with `discover`."""
