"""Reference solutions, for teachers; nothing in the starters imports them."""
