"""Answers about file systems and persistence models (lists of promises to applications). An answer has a verdict on one
claim, and the crash states that support the verdict."""
