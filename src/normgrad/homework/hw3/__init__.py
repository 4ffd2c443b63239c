"""Homework 3: `assignment` has its tasks, `solution` what a student writes."""
