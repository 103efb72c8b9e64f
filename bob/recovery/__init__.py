"""Crashes during recovery: what a boot does to a disk after a crash is recorded, and crashed itself (stage.py), in a
guest. Whose recoveries are crashed, and what a run directory keeps of them, is in bob/judge/ (recovered.py,
recoveries.py).
"""
