"""Every data shape that packages exchange or that is stored: documents, events, facts, decisions."""
