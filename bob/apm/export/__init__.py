"""Models in other forms: a class for ALICE's replayer, a page of prose, a picture of weaker and stronger models."""
