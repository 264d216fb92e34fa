"""What the engine needs to know: options bound to the columns and types of what a stage takes."""
