"""The diagnosis: from a wrong result to the formula that was implemented and the belief behind it."""
