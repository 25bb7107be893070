"""One importer a module: each declares IMPORTER."""
