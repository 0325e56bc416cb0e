"""Turns the schema tables into codec modules: run it as `python -m headrace.wire.generator` after changing a table."""
