"""Vectors of texts: the default local embedder, embedders of other libraries, calling any."""
