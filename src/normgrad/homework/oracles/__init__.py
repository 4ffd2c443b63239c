"""Right answers: what each kind of task asks with, what must come back, and how far off it may be."""
