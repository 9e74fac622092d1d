"""The yard: real tables that every change of a default is measured on. ``./dev yard`` measures, docs/yard.md tells."""
