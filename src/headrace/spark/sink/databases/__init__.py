"""Rows of a DataFrame into a table of PostgreSQL or SQLite, exactly once, without a jar.

Tasks copy rows into a staging table. One transaction of the driver merges them into the table and records the batch.
"""
