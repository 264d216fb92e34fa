"""What columns are made of and worked on by: Arrow buffers, codes, order, hashes, lists. They know nothing of windows."""
