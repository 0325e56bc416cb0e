"""Administration as operations: every function here is one, and takes what is known of the cluster."""
