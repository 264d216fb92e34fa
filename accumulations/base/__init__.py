"""The contract of an accumulation, and its adapters to merges, retractions and plain Python."""
