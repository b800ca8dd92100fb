"""Tools that are independent of the domain: strict readers and writers of documents, safe file access, kill points."""
