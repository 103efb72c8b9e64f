"""Makes workloads within bounds (limits on names, operations and calls). Also makes the properties that these workloads
test: what must still be true after a crash."""
