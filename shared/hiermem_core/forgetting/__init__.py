"""Forgetting: erasing what was stored, from every store and from the files themselves."""
