"""``python -m pypto.perf``."""

from pypto.perf.cli import main

raise SystemExit(main())
