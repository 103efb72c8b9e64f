"""bob's agent, the program that works for bob in a guest. client.py packs it and sends it requests, inside/ has its
code, and loss.py says why a guest was lost."""
