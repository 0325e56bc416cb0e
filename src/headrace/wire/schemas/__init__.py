"""What travels: one table per Kafka API, all versions in it. The codecs in `wire.messages` are generated from these."""
