"""Sandboxes on the host, by bubblewrap: an agent in each checks trees, natively and without a guest."""
