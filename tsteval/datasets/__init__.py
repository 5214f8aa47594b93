"""Tables of any format, blocks of large ones, style pairs, human ratings, the published sets."""
