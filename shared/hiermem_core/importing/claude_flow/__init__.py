"""The formats of claude-flow: one module each."""
