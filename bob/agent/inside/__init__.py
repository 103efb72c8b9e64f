"""bob's agent, run by ``python3 -S`` from one file. It imports only the standard library, and needs no Python newer
than 3.9. A function in this package raises Denial if the guest cannot do what bob asks."""
