"""Reading checkpoints: ``bm.inspect``, ``Pipeline.state``, ``bm.check_upgrade``, ``bm.migrate``."""
