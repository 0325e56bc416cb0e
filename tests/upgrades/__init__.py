"""Data of a development version before 0.1: parts that the present one reads, and parts that it refuses."""
