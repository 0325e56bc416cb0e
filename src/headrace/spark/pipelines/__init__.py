"""Pipelines as files: a short `pipeline.yml` that says from which topic, through which transform, into which sinks.

Spark runs them; this package reads the file, compiles it to a streaming query, runs and watches that query, and keeps
what lies beside its checkpoint. Reading and checking a file imports nothing of Spark.
"""
