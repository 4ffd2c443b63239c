"""Homework 2: `assignment` has its tasks, `solution` what a student writes."""
