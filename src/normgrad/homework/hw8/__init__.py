"""Homework 8: tasks, reference solution, wrong solutions, and the model that they train."""
