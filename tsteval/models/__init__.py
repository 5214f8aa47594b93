"""Models that are loaded: their base, classifiers, language models, encoders, generation, attribution's engine."""
