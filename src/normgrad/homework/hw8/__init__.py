"""Homework 8: tasks, reference solution, and the model that it trains."""
