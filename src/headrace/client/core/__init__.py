"""The client without a clock or a socket: what to send next, and what the answers mean."""
