"""Learning notes: what a cheap model makes of the turns of a thread, in the background."""
