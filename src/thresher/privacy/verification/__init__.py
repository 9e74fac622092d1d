"""What may be wrong with a certificate, in what it states and in what it lists; each check returns sentences."""
