"""``python -m skipindex`` is ``skipindex``."""

from __future__ import annotations

import sys

from skipindex.cli import main

if __name__ == "__main__":
    sys.exit(main())
