"""Benchmarks of this project alone: every load beside Apache Kafka, figure pages, and floors of the machine."""
