"""The vector index: vectors of many rows on disk, fed from an outbox, always disposable."""
