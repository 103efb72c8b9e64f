"""bob's agent: what runs inside a guest, and the host's end of it.

client    packs the agent, and asks it things
documents what it is told of a recording
loss      what it is to lose a guest, and why it was lost
inside/   the agent itself: standard library only, packed into one file

Nothing here knows how guests are made or started (bob/guest/): an agent is what answers at the end of a stream.
"""
