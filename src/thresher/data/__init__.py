"""Tables in: read, checked, described by schemas; whose rows they are, and the laws of synthetic ones."""
