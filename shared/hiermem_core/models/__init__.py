"""Values: frozen, plain, without behaviour that reads a clock or a disk."""
