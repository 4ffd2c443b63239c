"""What a learning platform exports goes in, what it imports comes out: Canvas, Moodle, Gradescope, plain folders."""
