"""Guests: the virtual machines that bob boots, restores, talks to and ends. Also machines that bob did not boot."""
