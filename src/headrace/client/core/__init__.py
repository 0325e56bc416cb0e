"""The client without a clock or a socket: it decides which requests to send and interprets the responses."""
