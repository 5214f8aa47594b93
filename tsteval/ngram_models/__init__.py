"""N-gram models: counts, smoothings, the model, its files, unigrams."""
