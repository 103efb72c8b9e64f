"""Subjects of crashes: file systems, disks, layers, and sets of these, in file-systems/, sets/ or files of the user."""

from bob.subject.file_system import MIB, FileSystem, file_system, file_systems, is_file
from bob.subject.sets import ConfigurationSet, load_set, set_names
from bob.subject.subject import DEFAULT_AUDIT, DEFAULT_BUDGET, Layer, Subject, configuration

__all__ = [
    "DEFAULT_AUDIT", "DEFAULT_BUDGET", "MIB", "ConfigurationSet", "FileSystem", "Layer", "Subject", "configuration",
    "file_system", "file_systems", "is_file", "load_set", "set_names",
]  # fmt: skip
