"""Kafka's bytes: primitives, frames, schema tables, generated codecs and record batches. No input or output here."""
