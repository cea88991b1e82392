"""Sessions: what agents saw, did and got, step by step."""
