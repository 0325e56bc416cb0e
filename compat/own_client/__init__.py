"""Headrace's own client against Apache Kafka: the tests of its fronts, and the security that only Kafka has so far."""
