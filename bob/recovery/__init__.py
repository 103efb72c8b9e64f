"""Crashes during recovery: what a boot does to a disk after a crash is recorded, and crashed itself.

choice.py   whose recoveries are crashed (pure)
stage.py    records and explores them in a guest
kept.py     what a run directory keeps of them, read again and judged
"""
