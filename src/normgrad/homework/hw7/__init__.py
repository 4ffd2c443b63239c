"""Homework 7: `assignment` has its tasks, `solution` what a student writes."""
