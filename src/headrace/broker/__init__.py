"""The running node: sockets in front, partitions behind, and the one loop that drives both."""
