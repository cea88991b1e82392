"""Run the command line as `python -m hiermem_core.cli`."""

import sys

from hiermem_core.cli.ending import main

sys.exit(main())
