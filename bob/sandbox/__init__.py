"""Sandboxes on the host, made by bubblewrap. An agent in each sandbox runs a program's checker on trees, natively and
without a guest."""
