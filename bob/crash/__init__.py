"""The legal crash states (states that the disk may be in after a crash), bob's order of search among them, and the
content of the medium in each state (docs/design.md, section 3)."""
