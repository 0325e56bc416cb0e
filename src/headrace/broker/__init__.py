"""The running broker: connections, partitions, coordinators, and the one loop that drives them."""
