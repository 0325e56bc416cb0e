"""The segment log of one partition on the Disk port, in Kafka's on-disk layout."""
