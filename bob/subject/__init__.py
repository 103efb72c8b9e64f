"""Subjects: what bob crashes, for example ext4 with its options on a disk. File systems, disks, layers (such as RAID,
between the disks and a file system), and sets of configurations are declared in TOML files. bob's own files are in
subfolders of this folder, and a user may write others."""

from bob.subject.file_system import MIB, FileSystem, file_system, file_systems, is_file
from bob.subject.layer import Layer, layers, promises, stack
from bob.subject.sets import ConfigurationSet, load_set, set_names
from bob.subject.subject import DEFAULT_AUDIT, DEFAULT_BUDGET, Subject, cluster_of, configuration

__all__ = [
    "DEFAULT_AUDIT", "DEFAULT_BUDGET", "MIB", "ConfigurationSet", "FileSystem", "Layer", "Subject", "cluster_of",
    "configuration", "file_system", "file_systems", "is_file", "layers", "load_set", "promises", "set_names", "stack",
]  # fmt: skip
