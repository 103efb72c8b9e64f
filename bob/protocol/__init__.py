"""The update protocol of a program: what each of its system calls changes in the file system. From a crash state, bob
finds out which of these changes were on the disk at the crash, and whether as a whole or in part."""
