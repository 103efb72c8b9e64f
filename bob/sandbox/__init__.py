"""Sandboxes on the host, made by bubblewrap. In each sandbox, an agent carries out bob's requests, natively and without
a guest. It runs the checker of a program under test on trees of files, or a file system's check on disks."""
