"""The update protocol of a program: what each of its system calls changes, and what of that a crash has left."""
