"""The texts of a table, file by file, as the dictionaries they are stored with.

A column of names has millions of rows and a handful of distinct texts, and its files hold exactly that: each distinct
text once, and a small number per row. Read as it lies there, a rule about texts looks at the handful only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq

from weighbridge.pipeline.lake.failure import told
from weighbridge.pipeline.lake.lake import Lake


def texts(
    lake: Lake, table: str, columns: Sequence[str], days: Collection[date | None] | None
) -> Iterator[tuple[date | None, dict[str, pa.DictionaryArray]]]:
    """Day and columns of each stretch of rows, one stretch in memory at a time.

    Args:
        lake: the lake; its lock keeps files from being taken away meanwhile.
        table: the table.
        columns: columns of strings. One that a file is too old to have is left out there.
        days: only files of these days, null among them for a table that is not kept by day; null: all.

    Raises:
        LakeError: a file cannot be read.
    """
    for part in lake.parts(table):
        if days is None or part.day in days:
            with told(f"reading {table}", lake.root):
                store, path = lake.place.store_of(part.address)
                with store.open_input_file(path) as source:
                    file = pq.ParquetFile(source, read_dictionary=list(columns))
                    held = [name for name in columns if name in file.schema_arrow.names]
                    for group in range(file.num_row_groups):
                        for stretch in file.read_row_group(group, columns=held, use_threads=False).to_batches():
                            yield part.day, dict(zip(held, stretch.columns, strict=True))
