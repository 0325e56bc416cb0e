"""The segment log of one partition on the Disk port, in the layout Kafka uses on disk."""
