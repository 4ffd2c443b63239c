"""What the book's cells use and users of the operators do not."""
