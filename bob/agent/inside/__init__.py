"""bob's agent: runs in a guest by ``python3 -S``, from one file, with the standard library of Python 3.9 alone. All its
devices are over files on tmpfs: it touches nothing but the guest's memory. Nothing in here imports the rest of bob."""
