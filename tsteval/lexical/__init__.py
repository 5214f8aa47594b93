"""Words and counts: clipped matches, smoothings, n-gram models, links, quantities, English."""
