"""The legal crash states: the states that the disk may be in after a crash. The package also decides which of these
states bob explores first, and composes the content of the medium in each of them (docs/design.md, section 3)."""
