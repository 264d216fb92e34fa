"""What a session and Spark's Python workers must have, and how they behave."""
