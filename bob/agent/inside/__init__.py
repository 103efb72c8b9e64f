"""bob's agent: runs inside the guest, performs workloads, records, builds crash states, mounts and observes them.

Standard library only. :func:`bob.agent.client.agent_file` packs this package into one file (a zipapp) that is
pushed over SFTP and started with ``python3 -S``; it runs in any Linux guest with device-mapper, loop devices and
tracefs, also one that bob did not build. All devices are loop devices over files on tmpfs: nothing outside the guest's
memory is touched, and under a virtual clock a recording depends on nothing but the guest itself.

Nothing in here imports the rest of bob. The rest of bob imports only forms that both ends must know: frames, names of
ports, and how a page of the kernel's ring buffer is laid out.
"""
