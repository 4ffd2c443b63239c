"""What is graded: a student's code in this process or in one of its own, called on given arrays."""
