"""Abstract persistence models: which crash states an application may see on a file system.

A model is a set of *clauses*, each of which forbids something (:mod:`bob.apm.clauses`). A workload is taken apart into
micro-operations (:mod:`bob.apm.micro`), the clauses put dependencies between them (:mod:`bob.apm.dependencies`), and
the crash states that a model allows are what the dependency-closed subsets leave. So whether a model allows an
observed state is a question with an exact answer (:mod:`bob.apm.allowed`): from it a model is derived
(:mod:`bob.apm.derive`) and held against runs (:mod:`bob.apm.check`).

After "All File Systems Are Not Created Equal" (OSDI'14), section 4.2 and Table 4.
"""
