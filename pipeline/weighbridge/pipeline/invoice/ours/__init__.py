"""Our side of a bill: calls as the servers recorded them, and in bundles that any way to bill treats alike."""
