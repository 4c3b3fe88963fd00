"""``python -m skipindex`` is ``skipindex``."""

from __future__ import annotations

import sys

from skipindex.cli import main

sys.exit(main())
