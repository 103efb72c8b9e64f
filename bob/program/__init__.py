"""Programs under test, as data: their scripts, what they told before a crash, and what their checker says."""
