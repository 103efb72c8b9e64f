"""bob's agent: client packs it and asks it things, loss says why a guest was lost, inside/ is the agent itself, and
shared has the names that both ends know. No module here knows how guests are made: an agent answers at the end of a
stream."""
