"""What a dispute pack holds and where.

<pack>/
    README.txt               what it is, and how to check it
    dispute.json             the finding, its history without anybody's words, files, proofs; the digest of each file
    manifest.json            of the close of the month, where it is closed: the root that every proof leads to
    rows/<table>.parquet     the rows of the attempts behind the finding, and the prices they were priced with
"""

from __future__ import annotations

FORMAT, VERSION = "weighbridge dispute", 1
DISPUTE, README, MANIFEST = "dispute.json", "README.txt", "manifest.json"
# Tables whose rows are ids and counts; those of prices beside them.
OF_ATTEMPTS = ("usage_report", "reading", "priced_amount", "gap_cause")
PRICES = ("price", "price_tier", "price_fee")
# Of a comparison everything but whose it was: without these columns its row cannot be proved, and is not.
COMPARISON, WITHHELD = "reconciled", frozenset({"tenant", "task", "route"})
FOREIGN = "foreign_id"

README_TEXT = """Dispute pack of Weighbridge

dispute.json   the finding: expected, observed, difference, money, cause; what became of it; the digest of every file
rows/          the rows behind it: what the API reported (raw leaves), how it was read, what it costs, the prices used
manifest.json  of the closed month, where it is closed; its root was fixed when the month was closed

To check it, without the installation it came from and without a network:

    pip install "weighbridge[pipeline]"
    weighbridge verify PACK --root ROOT

It checks every digest, leads every row that was closed to the root of the month (SHA-256 Merkle proofs), makes the id
of the finding anew from what it is about, and prices every reading again from the price rows. ROOT is the root of the
closed month, as it was published when the month was closed.

By hand: leaf = SHA-256(0x00 | salt | canonical row), node = SHA-256(0x01 | left | right); an amount is the sum over
the classes of tokens x price per million / 1,000,000, exact in decimals.
"""


def rows_file(table: str) -> str:
    """The file with the rows of a table."""
    return f"rows/{table}.parquet"
