"""The derivations of the book, one module for each: every module registers the equations of its chapter."""
