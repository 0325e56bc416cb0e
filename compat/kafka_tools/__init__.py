"""Apache Kafka's own commands for access rules and users, with this broker."""
