"""Facts about stages, read from what their shards store, and rescaling."""
