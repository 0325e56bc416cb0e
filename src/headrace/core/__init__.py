"""Decisions only: state machines with no clock, socket, file, thread or randomness of their own."""
