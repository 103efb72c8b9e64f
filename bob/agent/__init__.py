"""bob's agent: client.py packs the agent and sends it requests, inside/ is its code, loss.py says why a guest was
lost."""
