"""Generate the codec modules from the schema tables: run `python -m headrace.wire.generator` after changing a table."""
