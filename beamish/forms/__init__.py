"""Input forms: how the rows of a source encode changes. Without one a row is an insert (docs/rules/changelogs.md#input-forms).

Rows can be changes in four ways. In two of them a row inserts or deletes a whole row, which the next stage adds or retracts;
these are the forms in this folder. In the other two a row is an upsert by key, so only the stage that stores the table knows the
row it replaces; these are stages.

    from_changelog(format)    inserts and deletions of whole rows      forms/changelog.py
    from_panes()              a table of panes, by ``pane.kind``       forms/panes.py
    changes(...)              upserts by key                           kinds/changes/stage.py
    versions(...)             upserts by key and time                  kinds/versions/stage.py

They share a vocabulary: ``deleted``, ``sequence_by``, and reasons for dropped rows (``DropReason``).
"""

from beamish.forms.changelog import FORMATS, FromChangelog
from beamish.forms.form import InputForm, Unfolded
from beamish.forms.panes import FromPanes, is_of_panes, not_as_rows

__all__ = ["FORMATS", "FromChangelog", "FromPanes", "InputForm", "Unfolded", "is_of_panes", "not_as_rows"]
