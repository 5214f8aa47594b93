"""Following people: correlations, rating sheets, studies, estimates, language models as judges."""
