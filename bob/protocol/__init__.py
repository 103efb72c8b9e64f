"""The update protocol of a program: what each of its system calls changes in the file system, and how much of these
changes a crash state has."""
