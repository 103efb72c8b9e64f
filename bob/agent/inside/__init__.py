"""bob's agent: runs inside the guest, performs workloads, records, builds crash states, mounts and observes them.

Standard library only. :func:`bob.agent.client.agent_file` packs this package into one file, which any Linux guest with
device-mapper, loop devices and tracefs runs by ``python3 -S``. All devices are loop devices over files on tmpfs: the
agent touches nothing but the guest's memory. Under a virtual clock a recording depends on the guest alone.

Nothing in here imports the rest of bob.
"""
