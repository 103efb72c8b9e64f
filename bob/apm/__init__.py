"""Abstract persistence models (OSDI'14, section 4.2, Table 4). A model is a set of clauses. A clause is one promise
about the crash states that applications see."""
