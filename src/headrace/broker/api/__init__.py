"""One module per Kafka API: a request becomes a call, its result a response; nothing is decided here."""
