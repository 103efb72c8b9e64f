"""Abstract persistence models: which crash states an application may see on a file system (OSDI'14, section 4.2 and
Table 4).

A model is a set of clauses (:mod:`bob.apm.clauses`) on micro-operations (:mod:`bob.apm.micro`). It allows what the
dependency-closed sets of these leave (:mod:`bob.apm.dependencies`).
"""
