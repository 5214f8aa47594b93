from pathlib import Path

# What follows is added by build.py: extensions that reach for other machines, or that keep Sphinx from working in
# parallel, are left out.
extensions = [
    name
    for name in extensions
    if name
    not in (
        "sphinx_thebe",
        "sphinx_comments",
        "sphinx.ext.intersphinx",
        "sphinxcontrib.bibtex",
        "sphinx_jupyterbook_latex",
    )
]
html_search_scorer = str(Path(__file__).parent / "scorer.js")


def setup(app):
    # sphinx_external_toc brings this extension and it does not say so itself, but it only numbers what has been read,
    # and nothing is numbered here
    app.extensions["sphinx_multitoc_numbering"].parallel_read_safe = True
