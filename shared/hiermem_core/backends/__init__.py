"""Where entries live and how they are found: rows, keyword and vector indexes, ranking."""
