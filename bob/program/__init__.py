"""Programs under test, as data: their scripts, their output before a crash, and what their checkers say of crash
states."""
