"""bob's agent: what runs inside a guest, and the host's end of it.

client packs the agent, and asks it things loss why a guest was lost shared names and documents that both ends know
inside/ the agent itself: standard library only, packed into one file

No module here knows how guests are made or started (bob/guest/): an agent answers at the end of a stream.
"""
