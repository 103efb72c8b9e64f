"""The documentation and the results as one static site, which needs no server (docs/reports.md, "One site").

``results`` reads what was measured, ``living`` makes the table of all of it, ``rely`` says what programs
can rely on, ``sources`` has the project's own pages, ``build`` makes the site of all these, and ``links``
checks it.
"""
