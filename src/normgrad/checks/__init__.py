"""Checks that can fail: cases, tolerances, finite differences and the contract."""
