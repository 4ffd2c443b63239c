"""What is wrong on purpose: mutants of the implementations, broken rules of the prover, and real bugs."""
