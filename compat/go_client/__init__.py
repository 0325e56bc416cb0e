"""A program for a Go client, run against the broker: franz-go, which is told of APIs that Kafka has not."""
