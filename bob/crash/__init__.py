"""Legal crash states, bob's order of search among them, and the content of the medium in each (docs/design.md, section
3)."""
