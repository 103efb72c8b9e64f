"""Legal crash states, the order of search, and the content of the medium in each (docs/design.md, section 3)."""
