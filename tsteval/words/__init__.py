"""Words: tokens, matches and counts, n-gram models, links, numbers, English."""
