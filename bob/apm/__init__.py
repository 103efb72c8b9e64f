"""Abstract persistence models (OSDI'14, section 4.2 and Table 4): which crash states an application may see. A model is
a set of clauses, and allows what the closed sets of micro-operations leave."""
