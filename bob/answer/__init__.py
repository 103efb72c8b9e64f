"""Answers about file systems and models: verdicts, and the crash states that they rest on."""
