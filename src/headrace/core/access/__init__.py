"""Decisions about who a client is and what it may do; no sockets, files or clocks."""
