"""Answers about file systems and models: verdicts, and the crash states behind them."""
