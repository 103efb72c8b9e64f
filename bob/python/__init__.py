"""bob from Python: its functions (``functions``), and how declared options become their arguments (``calls``)."""
