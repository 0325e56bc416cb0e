"""A program for a Go client, run against the broker: franz-go, with a broker that lists APIs unknown to Kafka."""
