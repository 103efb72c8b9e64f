"""Exports of a model (a set of promises about crash states): a class for ALICE's replayer, a page of prose, and a
picture of weaker and stronger models."""
