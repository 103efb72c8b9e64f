"""Abstract persistence models (OSDI'14, section 4.2, Table 4): clauses about the crash states that applications see."""
