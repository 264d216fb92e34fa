"""Values per row over the rows of its key around it, as SQL's OVER."""
