"""Makes workloads within bounds (limits on names, operations and calls), and the properties that they test."""
