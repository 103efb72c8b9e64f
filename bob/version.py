"""The version of bob."""

__version__ = "0.2.0"
