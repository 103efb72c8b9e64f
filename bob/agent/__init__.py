"""bob's agent: client packs it and asks it, inside/ is the agent itself, shared has the names that both ends know, and
loss says why a guest was lost. No module here knows how guests are made."""
