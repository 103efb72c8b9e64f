"""The documentation and the results as one static site (docs/results.md, "One site").

``results`` reads the results, ``results_table`` and ``rely`` make tables of them, and ``sources`` prepares the
project's pages. ``build`` builds the site, and ``links`` checks it.
"""
