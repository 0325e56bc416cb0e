"""The one Kafka client: a sans-IO core and the fronts that drive it."""
