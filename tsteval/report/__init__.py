"""How pictures are drawn, and what an evaluation found as a page, a table or a line of text."""
