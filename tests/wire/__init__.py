"""Kafka's bytes: our codecs against other people's, against damage, and against their tables."""
