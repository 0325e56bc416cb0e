"""One module per Kafka API: decodes a request, calls the part of the broker that decides, and encodes the response."""
