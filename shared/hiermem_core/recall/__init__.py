"""Recall: finding what was said and learnt, over entries and turns alike."""
