"""Homework 5: `assignment` has its tasks, `solution` what a student writes."""
