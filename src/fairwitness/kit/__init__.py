"""Domain-free tools: strict readers and writers of documents, safe file access, kill points."""
