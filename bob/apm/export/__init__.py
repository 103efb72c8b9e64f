"""Other forms of a model: a class for ALICE's replayer, a page of prose, and a picture of weaker and stronger
models."""
