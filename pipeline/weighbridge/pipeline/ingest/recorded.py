"""A recorded answer as the record that `read_usage` takes: the names of the one format in the words of the other.

    {"api_flavor": "openai_chat", "response_model": "m", "meta_headers": {}}  ->  {"api": ., "model": ., "headers": .}

What decides is `api_flavor`: recorders write it, and nobody else. A record without it is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

FLAVOR, SEVERAL = "api_flavor", "calls_in_record"
# A port behind a server's name, as some recorders write it: local_server(8000).
_PORT = re.compile(r"\((\d{1,5})\)$")


def server_name(value: str) -> str:
    """A provider's name, with its port written as everywhere else."""
    return _PORT.sub(r":\1", value)


def as_record(record: Mapping[str, object]) -> Mapping[str, object]:
    """A record for `read_usage`: a recorded answer in its words, any other as it is.

    As for the importer of recorded answers, the model that answered goes before the one that was asked for, and the
    answer before its `usage`; an answer that is text has none.
    """
    if FLAVOR not in record:
        return record
    provider, served = record.get("provider"), record.get("response_model")
    answer = record["response"] if record.get("response") is not None else record.get("events")
    told: dict[str, object] = {
        "provider": server_name(provider) if isinstance(provider, str) else provider,
        "api": record[FLAVOR],
        "model": record.get("model") if served is None or served == "" else served,
        **{name: record[name] for name in ("context", "day", "at", "headers") if name in record},
    }
    if record.get("meta_headers") is not None:
        told["headers"] = record["meta_headers"]
    if answer is None:
        told["usage"] = record.get("usage")
    elif isinstance(answer, (list, tuple)):
        told["events"] = answer
    else:
        told["response"] = answer if isinstance(answer, Mapping) else {}
    return told


def why_unread(record: Mapping[str, object]) -> str | None:
    """Why a record cannot be one reading, or null: two APIs are named, or it holds several calls."""
    flavor, api, several = record.get(FLAVOR), record.get("api"), record.get(SEVERAL)
    if flavor is not None and api is not None and flavor != api:
        return "this line names two APIs: `api` and `api_flavor` differ; leave the wrong one out"
    if FLAVOR in record and isinstance(several, int) and several > 1:
        return "this line holds several calls (calls_in_record); `weighbridge ingest` reads each of them"
    return None
