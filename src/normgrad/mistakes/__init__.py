"""What is wrong on purpose: mutants of the implementations, and real bugs."""
