"""Spark writes exactly once to Apache Kafka: lanes, with the requests that every broker of its protocol serves."""
