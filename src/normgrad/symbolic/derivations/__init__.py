"""What no page derives: the operator's family, which programs are made of."""
