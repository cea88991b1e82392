"""Layer 2: threads, their turns, and the window a model reads of them."""
