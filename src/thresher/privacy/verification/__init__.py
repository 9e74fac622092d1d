"""What may be wrong with a certificate, one kind of contradiction per file; each check returns sentences."""
