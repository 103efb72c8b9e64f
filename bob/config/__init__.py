"""File systems, configurations of them, and named sets of configurations: the declarations that everything else asks.

A file system is one file in file-systems/, a set one in sets/ (or anywhere, by its path).
"""

from bob.config.configuration import DEFAULT_AUDIT, DEFAULT_BUDGET, Configuration, configuration
from bob.config.file_system import DEVICE, MIB, FileSystem, file_systems
from bob.config.sets import ConfigurationSet, load_set, set_names

__all__ = [
    "DEFAULT_AUDIT",
    "DEFAULT_BUDGET",
    "DEVICE",
    "MIB",
    "Configuration",
    "ConfigurationSet",
    "FileSystem",
    "configuration",
    "file_systems",
    "load_set",
    "set_names",
]
