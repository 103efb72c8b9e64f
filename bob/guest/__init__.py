"""Guests: virtual machines that bob boots, restores, talks to, loses and ends; also machines that it did not boot."""
