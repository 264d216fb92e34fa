"""Questions to a checkpoint: ``bm.inspect``, ``Pipeline.state``, ``bm.check_upgrade``, ``bm.migrate``."""
