"""bob's agent, the program that works for bob in a guest: client.py packs it and sends it requests, inside/ is its
code, loss.py says why a guest was lost."""
