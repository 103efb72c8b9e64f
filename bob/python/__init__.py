"""bob from Python: functions, and the arguments that their options become (calls)."""
