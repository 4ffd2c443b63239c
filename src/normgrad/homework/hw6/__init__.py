"""Homework 6: `assignment` has its tasks, `solution` what a student writes."""
