"""The tasks of each homework, one module each, with a HOMEWORK."""
