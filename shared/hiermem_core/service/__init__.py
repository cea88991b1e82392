"""The memory service: everything that is promised of entries, whatever keeps them."""
