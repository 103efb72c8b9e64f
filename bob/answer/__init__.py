"""Answers about file systems and models: a verdict on each claim, and the crash states that support it."""
