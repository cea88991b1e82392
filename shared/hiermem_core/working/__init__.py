"""Working memory: repeated and simultaneous searches cost microseconds, and no answer is stale.

`WorkingMemory(searcher)` is the cache itself, `create_working_memory(searcher)` a lookalike of the
searcher, or of tools, that uses one. A call is read (`shapes`, `fields`, `keys`), served
(`serving`) by the `table` from an answer (`answers`, `copying`) or a flight (`flights`), or else by
the searcher.
"""

from hiermem_core.working.values import Served, WorkingMemoryStats
from hiermem_core.working.working_memory import WorkingMemory
from hiermem_core.working.wrapping import create_working_memory

__all__ = ["Served", "WorkingMemory", "WorkingMemoryStats", "create_working_memory"]
