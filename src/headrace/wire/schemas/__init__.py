"""Schema tables: one per Kafka API, with all versions. The codecs in `wire.messages` are generated from them."""
