"""Guests: the virtual machines that bob boots, restores, talks to and ends. This package also reaches machines that bob
did not boot."""
