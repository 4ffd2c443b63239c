"""The student's code behind one interface: a function of this process, or a solution.py, each call in a fork."""
