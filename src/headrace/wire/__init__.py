"""Kafka's wire format: primitives, frames, schema tables, generated codecs and record batches. No input or output
here.
"""
