"""Why a window did not fire: what a checkpoint, or a script, says of its stages, as tables and in words."""
