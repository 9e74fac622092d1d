"""Schemas: what is publicly known about a table, kept in a small TOML file beside it."""

from thresher.data.schema.column import Column
from thresher.data.schema.encoding import Encoding
from thresher.data.schema.schema import Schema, Spent, TableRows

__all__ = ["Column", "Encoding", "Schema", "Spent", "TableRows"]
