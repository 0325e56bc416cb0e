"""Rows of a DataFrame into topics: encoded column by column, at least once or exactly once."""
