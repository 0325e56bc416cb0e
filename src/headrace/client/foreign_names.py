"""Names of settings in other clients, with a hint for each."""

_ADDRESS = "it is bootstrap_servers here"

HINTS = {
    # Likely guesses that are too different from the right name to be found by similarity
    "address": _ADDRESS,
    "addresses": _ADDRESS,
    "broker": _ADDRESS,
    "brokers": _ADDRESS,
    "host": _ADDRESS,
    "hosts": _ADDRESS,
    "metadata_broker_list": _ADDRESS,
    "servers": _ADDRESS,
    "timeout": "times are in milliseconds: timeout_ms of Admin, request_timeout_ms of all clients",
    # kafka-python and aiokafka
    "api_version": "leave it out: the client negotiates versions",
    "group_protocol_type": "leave it out",
    "loop": "leave it out: a client belongs to the loop in which it is created",
    "max_batch_size": "it is batch_size here",
    "topic_metadata_refresh_interval_ms": "it is metadata_max_age_ms here",
    "retries": "leave it out: records are retried until delivery_timeout_ms is over",
    "sasl_oauth_token_provider": "set sasl_oauth_token to a function that returns a token",
    "sasl_plain_password": "it is sasl_password here",
    "sasl_plain_username": "it is sasl_username here",
    "ssl_cafile": "it is ssl_ca_location here",
    "ssl_certfile": "it is ssl_certificate_location here",
    "ssl_context": "set ssl_ca_location, ssl_certificate_location and ssl_key_location",
    "ssl_keyfile": "it is ssl_key_location here",
    "ssl_password": "it is ssl_key_password here",
    # librdkafka, and so confluent-kafka
    "debug": "set the level of the logger headrace.client",
    "default_topic_config": "give its settings separately",
    "enable_auto_offset_store": "leave it out: commit(record) commits up to a record",
    "enable_partition_eof": "compare position() with end_offsets(), or give batches() a timeout_ms",
    "enable_ssl_certificate_verification": "set ssl_ca_location to the certificate to trust",
    "error_cb": "errors are raised, and what cannot be raised is logged by headrace.client",
    "fetch_message_max_bytes": "it is max_partition_fetch_bytes here",
    "fetch_wait_max_ms": "it is fetch_max_wait_ms here",
    "logger": "logs go to the logger headrace.client",
    "message_send_max_retries": "leave it out: records are retried until delivery_timeout_ms is over",
    "message_timeout_ms": "it is delivery_timeout_ms here",
    "on_delivery": "give it to send()",
    "queue_buffering_max_kbytes": "it is buffer_memory here, in bytes",
    "queue_buffering_max_messages": "it is buffer_memory here, in bytes",
    "queue_buffering_max_ms": "it is linger_ms here",
    "socket_timeout_ms": "it is request_timeout_ms here",
    "statistics_interval_ms": "call metrics()",
    "stats_cb": "call metrics()",
    # Java's
    "interceptor_classes": "leave it out: wrap send() or the loop over records",
    "sasl_jaas_config": "give sasl_username and sasl_password",
    "ssl_endpoint_identification_algorithm": "it is ssl_check_hostname here",
    "ssl_keystore_location": "give ssl_certificate_location and ssl_key_location, as PEM files",
    "ssl_truststore_location": "it is ssl_ca_location here, a PEM file",
}


def hint_for(name: str) -> str | None:
    return HINTS.get(name.lower().replace(".", "_"))
