"""The documentation and the results as one static site, which needs no server (docs/reports.md, "One site").

``results`` reads what was measured, ``living`` makes the table of all of it, ``rely`` the answers for people who write
programs, ``sources`` the project's own pages, ``build`` the site of all these, and ``links`` checks it.
"""
