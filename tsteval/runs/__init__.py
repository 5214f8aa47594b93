"""Running metrics over tables: settings, scoring, kept scores, blocks, Ray, results, trackers."""
