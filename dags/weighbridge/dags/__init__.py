"""The schedule: flows that call `weighbridge.pipeline.run`. The only room that may import Prefect.

    nightly         take in what came and do whatever is due            work: a day or a month of one step
    monthly_close   do a month that has ended once more, and close it
    backfill        read, price, reconcile and report a range of days anew
    retention       delete what is past its time, with receipts
    alert           a run failed: tell those who are to know

What a flow hands to Prefect, and Prefect keeps in clear, is days, months, paths, digests and counts.
"""

from weighbridge.dags.quiet import hush

hush()
