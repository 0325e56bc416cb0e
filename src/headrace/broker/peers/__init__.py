"""Links to the other nodes of the cluster, and the requests that travel on them."""
