"""Answers: of what a file system, or a model of one, was asked, what is known of it, and by which crash states."""
