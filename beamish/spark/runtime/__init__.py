"""Requirements and settings of a session and Spark's Python workers."""
