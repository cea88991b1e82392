"""How values show themselves: text for a terminal, HTML for a notebook or the inspector."""
