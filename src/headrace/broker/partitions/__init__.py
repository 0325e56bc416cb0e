"""The partitions this node leads: append, read, and the requests parked on them."""
