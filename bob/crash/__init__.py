"""Legal crash states, the order in which bob searches them, and the content of the medium in each (docs/design.md,
section 3)."""
