"""Administration as operations: every function here returns one, and takes the cluster metadata."""
