"""What Spark gets out of a broker: reads, scans, writes and micro-batches, beside Spark's own connector for Kafka."""
