"""A model for others: a class for ALICE's replayer, a page of prose, a picture of which model is weaker than which."""
