"""The contract of an accumulation, and what adapts one to merges, retractions and plain Python."""
