"""Spark reads topics and writes them: the data source `headrace`, from PyPI alone."""
