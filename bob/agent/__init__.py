"""bob's agent: client packs and asks it, inside/ is the agent itself, loss says why a guest was lost."""
