"""bob's agent: runs in a guest by ``python3 -S``, from one file, with the standard library of Python 3.9 alone. Its
devices are over files on tmpfs: it touches nothing but memory. Nothing in here imports the rest of bob."""
