"""Making classifiers: the loop, heads, a run on a file, calibration, cards, the style check."""
