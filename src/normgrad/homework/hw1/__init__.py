"""Homework 1: `assignment` has its tasks, `solution` what a student writes."""
