"""Reports: the table of a run, and several configurations side by side. Nothing here knows a guest or a colour."""
