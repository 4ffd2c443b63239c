"""Homework 4: `assignment` has its tasks, `solution` what a student writes."""
