"""The inspector: a page on this machine that shows what a memory keeps, and makes it forget."""
