"""The legal crash states: the states that the disk may be in after a crash. The package also has bob's order of search
among them, and the content of the medium in each of them (docs/design.md, section 3)."""
