"""Laws whose examples take long."""

from __future__ import annotations

from hypothesis import settings

dear = settings(max_examples=max(settings().max_examples // 2, 1))
"""Half as many examples in the fixed sample; a search (``make test-deep``) goes on all the same."""
