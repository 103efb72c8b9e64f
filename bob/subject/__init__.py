"""File systems, configurations of them, and named sets of configurations: the declarations that everything else asks.

A file system is one file in file-systems/, a set one in sets/ (or either anywhere, by its path).
"""

from bob.subject.configuration import DEFAULT_AUDIT, DEFAULT_BUDGET, Configuration, ConfigurationDocument, configuration
from bob.subject.file_system import DEVICE, MIB, FileSystem, declared_by, file_system, file_systems, is_file
from bob.subject.sets import ConfigurationSet, load_set, set_names
from bob.subject.stack import Stack

__all__ = [
    "DEFAULT_AUDIT",
    "DEFAULT_BUDGET",
    "DEVICE",
    "MIB",
    "Configuration",
    "ConfigurationDocument",
    "ConfigurationSet",
    "FileSystem",
    "Stack",
    "configuration",
    "declared_by",
    "file_system",
    "file_systems",
    "is_file",
    "load_set",
    "set_names",
]
