"""Counting tokens: by a model's own vocabulary where it is at hand, else by estimate."""
