"""Random access rules and requests, whose outcome must be that of Apache Kafka with its StandardAuthorizer."""
