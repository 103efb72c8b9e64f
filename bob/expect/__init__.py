"""What somebody expects of a file system after a crash: a small language, and whether an observation is as expected.

docs/try.md describes the language with examples.
"""
