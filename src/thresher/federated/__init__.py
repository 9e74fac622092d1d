"""Parties that hold disjoint rows and learn one model together."""
