"""The update protocol of a program: what each of its system calls changes in the file system, and how much of each
change is in a crash state."""
