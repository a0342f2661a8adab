"""``python -m pypto.runtime.debug.replay``."""

from __future__ import annotations

import sys

from pypto.runtime.debug.replay.cli import main

sys.exit(main())
