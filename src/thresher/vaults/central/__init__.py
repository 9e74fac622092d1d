"""The vault of a curator who holds all rows: its questions, by the kind of their answer."""
