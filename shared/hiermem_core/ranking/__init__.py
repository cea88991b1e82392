"""The pure rules of finding: words, questions, and one score from all that is known of a row."""
