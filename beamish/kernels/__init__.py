"""Functions on columns: Arrow buffers, codes, order, hashes, lists. Independent of windows."""
