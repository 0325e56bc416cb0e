"""Rows of a DataFrame into files: a folder of Parquet files or a Delta table, exactly once, without a jar."""
