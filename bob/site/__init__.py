"""The documentation and the results as one static site (docs/results.md, "One site"). ``results`` reads them,
``results_table`` and ``rely`` make tables, ``sources`` the project's pages, ``build`` builds it, ``links`` checks
it."""
