"""One module for each command, of its name; ledger, schema and federate have commands of their own."""
