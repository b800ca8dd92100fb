"""The steps of a feature run: what it reads, what it asks for, and the documents it leaves for people."""
