"""Input forms: how the rows of a source say what they do. Without one a row is a row (docs/rules/changelogs.md#input-forms).

There are four ways in which rows can be changes. In two of them a row is a whole row that comes or goes, and the stage over them
counts it in or out; these are the forms in this folder. In the other two a row sets what its key holds, so what it replaces is
known only to who keeps the table; these are stages.

    from_changelog(format)    inserts and deletions of whole rows      forms/changelog.py
    from_panes()              a table of panes, by ``pane.kind``       forms/panes.py
    changes(...)              upserts by key                           kinds/changes/stage.py
    versions(...)             upserts by key and time                  kinds/versions/stage.py

They have one vocabulary: ``deleted``, ``sequence_by``, and reasons for dropped rows (``DropReason``).
"""

from beamish.forms.changelog import FORMATS, FromChangelog
from beamish.forms.form import InputForm, Unfolded
from beamish.forms.panes import FromPanes, is_of_panes, not_as_rows

__all__ = ["FORMATS", "FromChangelog", "FromPanes", "InputForm", "Unfolded", "is_of_panes", "not_as_rows"]
