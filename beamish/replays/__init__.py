"""``bm.replay``: what a query did with the rows of a key, as a test."""
