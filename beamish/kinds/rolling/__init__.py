"""Rolling spans per key (docs/rules/rolling.md). See ``contract/stage.py``."""
