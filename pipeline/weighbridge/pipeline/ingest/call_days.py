"""The days a call can be of, 2000 to 2099 in UTC: any other time is of another unit, a placeholder, or damage."""

from __future__ import annotations

from datetime import UTC, datetime

# From the first of these, up to and without the second.
FIRST, LAST = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
# The same as whole seconds, and as microseconds, since 1970.
FIRST_S, LAST_S = int(FIRST.timestamp()), int(LAST.timestamp())
FIRST_US, LAST_US = FIRST_S * 1_000_000, LAST_S * 1_000_000
