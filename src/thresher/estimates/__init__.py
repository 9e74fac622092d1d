"""What a schema needs to know, estimated within a budget."""
