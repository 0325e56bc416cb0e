"""Decisions about the peers of a node: the handshake of their connections, and invitations to join a cluster."""
