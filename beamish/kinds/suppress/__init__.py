"""Final results and rate limits over any stage: ``suppress``."""
