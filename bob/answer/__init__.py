"""Answers about file systems and persistence models (lists of promises to applications). An answer is about one claim,
such as a property that crash states should have. It has a verdict (such as HOLDS or FAILS), and the crash states that
support the verdict."""
