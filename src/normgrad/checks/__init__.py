"""Checks that can fail: cases, tolerances, finite differences, the contract, mutants and the ledger."""
