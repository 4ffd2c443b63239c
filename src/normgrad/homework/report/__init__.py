"""What a student reads: the report of a task, as text, as a table in a notebook, and as files for programs."""
