"""Pipelines as files: a short `pipeline.yml` names a topic, a transform and the sinks.

Spark runs them; this package reads the file, compiles it to a streaming query, runs and monitors that query, and keeps
its own files beside the checkpoint. Reading and checking a file imports nothing of Spark.
"""
