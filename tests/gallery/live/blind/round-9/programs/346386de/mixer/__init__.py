from .corpus import DomainCorpus
from .memory import MemoryHook

__all__ = ["DomainCorpus", "MemoryHook"]
