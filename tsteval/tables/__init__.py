"""Tables, pairs and ratings: any file or frame becomes checked rows that know where they stood."""
