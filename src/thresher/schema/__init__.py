"""Schemas: what is publicly known about a table, kept in a small TOML file beside it."""

from thresher.schema.column import Column
from thresher.schema.encoding import Encoding
from thresher.schema.schema import Schema, Spent, TableRows

__all__ = ["Column", "Encoding", "Schema", "Spent", "TableRows"]
