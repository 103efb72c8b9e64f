"""Programs under test, as data: their scripts, their output before a crash, and their checker's answers."""
