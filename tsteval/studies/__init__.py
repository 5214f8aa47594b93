"""Following people: coefficients, rating sheets, studies, ranks of systems."""
