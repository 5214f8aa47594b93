"""Every widget: controls, pictures that move, the server."""
