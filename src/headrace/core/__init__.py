"""Decisions only: state machines without a clock, socket, file, thread or randomness of their own."""
