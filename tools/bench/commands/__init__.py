"""The commands of `python -m tools.bench`."""
