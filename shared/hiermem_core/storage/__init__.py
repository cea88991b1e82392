"""Rows: the engine, the tables, and what differs between databases."""
