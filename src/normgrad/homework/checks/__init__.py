"""What the checks of several homeworks share."""
