"""Declarations of what is crashed: file systems, disks and layers, and named sets of these.

A file system is a file in file-systems/, a set one in sets/, or either anywhere, by its path.
"""

from bob.subject.file_system import DEVICE, MIB, FileSystem, declared_by, file_system, file_systems, is_file
from bob.subject.sets import ConfigurationSet, load_set, set_names
from bob.subject.subject import DEFAULT_AUDIT, DEFAULT_BUDGET, ConfigurationDocument, Layer, Subject, configuration

__all__ = [
    "DEFAULT_AUDIT",
    "DEFAULT_BUDGET",
    "DEVICE",
    "MIB",
    "ConfigurationDocument",
    "ConfigurationSet",
    "FileSystem",
    "Layer",
    "Subject",
    "configuration",
    "declared_by",
    "file_system",
    "file_systems",
    "is_file",
    "load_set",
    "set_names",
]
