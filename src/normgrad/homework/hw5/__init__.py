"""Homework 5: `assignment` has its tasks, `solution` what a student writes, `wrong` what a student may get wrong."""
