"""The documentation and the results as one static site (docs/results.md, "One site"). ``results`` reads,
``results_table`` and ``rely`` show, ``sources`` has the project's pages, ``build`` builds, and ``links`` checks."""
