"""Tests of skipindex, and what they have in common.

Every task of a build writes a pack.  The small tables of tests have several packs, as
large tables do.
"""

from unittest.mock import patch

from skipindex.build import missing

patch.object(missing, "_TASK_BYTES", 1).start()
