"""bob from Python: functions, the arguments that their options become (calls), and bob/__init__.pyi (stub)."""
