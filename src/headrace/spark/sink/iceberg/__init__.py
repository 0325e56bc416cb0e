"""Rows of a DataFrame into an Iceberg table, exactly once, without a jar: by pyiceberg.

Tasks write Parquet files into the table's location. One commit of the driver adds them and records the batch.
"""
