"""Laws of pipelines and their parts, checked over drawn scripts: ``from beamish.testing import laws``."""

from beamish.packages import check_hypothesis

check_hypothesis(__name__)
