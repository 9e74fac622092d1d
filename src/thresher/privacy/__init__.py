"""What a promise of privacy is and what it costs. Nothing here knows a row or a model."""
