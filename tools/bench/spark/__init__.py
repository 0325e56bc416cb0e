"""Spark loads on a broker: reads, scans, writes and micro-batches, compared with Spark's connector for Kafka."""
