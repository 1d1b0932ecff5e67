"""The catalogue of readiness checks: what each one means, how much it matters, who must act, and
where its threshold comes from.
"""

from trainprobe.checks.catalogue import (
    BUDGETS,
    SEVERITIES,
    SLOTS,
    STATES,
    CheckSpec,
    catalogue,
    spec_of,
)

__all__ = ["BUDGETS", "SEVERITIES", "SLOTS", "STATES", "CheckSpec", "catalogue", "spec_of"]
