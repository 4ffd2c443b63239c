"""The functions of libraries that a program may call: each has a row with its name and its arguments."""
