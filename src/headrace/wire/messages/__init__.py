"""Generated codecs, one module per API: classes of the messages, `decode_*` and `encode_*`. See `wire.generator`."""
