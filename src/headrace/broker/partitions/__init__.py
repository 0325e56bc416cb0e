"""The replicas on this node: their roles, append, read, and the requests parked on them."""
