"""The tables: the vocabulary of the product as Arrow schemas."""

from __future__ import annotations

from collections.abc import Iterator

from weighbridge.schemas import enumerations as e
from weighbridge.schemas.lattice import CROSSED_CELLS, REPORTED_CLASSES
from weighbridge.schemas.table import (
    Column,
    Table,
    attempt_key,
    binary,
    closed,
    count,
    day,
    flag,
    integers,
    moment,
    money,
    provenance,
    real,
    small,
    strings,
    text,
)

PSEUDONYM = r"[a-z]_[0-9a-f]{16}"
NAME = r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,127}"
ROUTE = f"/?{NAME}"
HEX32 = r"[0-9a-f]{32}"
HEX64 = r"[0-9a-f]{64}"
CURRENCY = r"[A-Z]{3}"
MONTH = r"\d{4}-\d{2}|all"
UNASSIGNED = "unassigned"


def _source() -> Column:
    return text(
        "source",
        "the system that wrote the row: an agent installation, a provider's API, an importer",
        required=True,
        pattern=NAME,
    )


def _child() -> Column:
    return small("child", "0 for the attempt itself, then its choices, beams or iterations", required=True)


def _request(*, required: bool = False) -> tuple[Column, Column]:
    hi, lo = attempt_key(required=required)
    return (
        Column("request_hi", hi.type, "first half of the id of the request this belongs to", not required),
        Column("request_lo", lo.type, "second half of the id of the request this belongs to", not required),
    )


def _accepted_steps() -> Iterator[Column]:
    """The fixed histogram of accepted lengths; its sum is `bonus`."""
    for length in range(8):
        yield count(f"accepted_steps_{length}", f"verify steps with a draft that accepted {length} of its tokens")
    yield count("accepted_steps_8_15", "verify steps with a draft that accepted 8 to 15 of its tokens")
    yield count("accepted_steps_16", "verify steps with a draft that accepted 16 of its tokens or more")


def _report() -> Column:
    return small(
        "report",
        "0 for the first usage report of this source about the attempt; a repetition of it is 1, 2, ...",
        required=True,
    )


REQUEST_SCOPE = Table(
    "request_scope",
    e.Domain.OPERATIONS,
    "What a user asked for, and the stages of a team's own pipeline that worked on it.",
    (
        *_request(required=True),
        small("scope", "0 for the request itself, then its stages in the order they started", required=True),
        day(),
        _source(),
        small("parent_scope", "the scope this one ran inside, null for the request"),
        closed("stage", e.Stage, "which component it is", required=True),
        text("name", "the name the caller gave the stage", pattern=NAME),
        text("tenant", "pseudonym of the tenant, or unassigned", required=True, pattern=f"{PSEUDONYM}|{UNASSIGNED}"),
        text("task", "task type, or unassigned", required=True, pattern=NAME),
        text("route", "route, or unassigned", required=True, pattern=ROUTE),
        moment("started_at", "when it started"),
        count("duration_us", "how long it took, microseconds"),
        count("input_tokens", "tokens that entered the stage, where its code says so"),
        count("output_tokens", "tokens that left the stage, where its code says so"),
        closed("status", e.AttemptStatus, "how it ended", required=True),
        *provenance(),
    ),
    key=("request_lo", "request_hi", "scope", "source", "revision"),
)

ATTEMPT = Table(
    "attempt",
    e.Domain.BILLING,
    "One API call that was sent, failures included, with what the engine computed and what the client got.",
    (
        *attempt_key(),
        day(),
        _source(),
        *_request(),
        small("scope", "the stage of the request that sent it"),
        small("attempt_number", "1 for the first try of a request, then 2, 3, ...", minimum=1),
        text("provider", "who answered", pattern=NAME),
        text("api", "which API was spoken", pattern=NAME),
        text("model_requested", "the model asked for", pattern=NAME),
        text("model_served", "the model that answered", pattern=NAME),
        text("model_revision", "revision of the weights", pattern=NAME),
        text("framework", "serving framework", pattern=NAME),
        text("framework_version", "its version", pattern=NAME),
        text("tokenizer", "fingerprint of the tokenizer", pattern=NAME),
        text("template", "fingerprint of the chat template", pattern=NAME),
        text("strategy_id", "id of the sparsity strategy; off is a strategy, null is unknown", pattern=HEX32),
        text("tenant", "pseudonym of the tenant, or unassigned", required=True, pattern=f"{PSEUDONYM}|{UNASSIGNED}"),
        text("tenant_key_id", "id of the pseudonym key", pattern=r"[0-9a-f]{12}"),
        small("subject_bucket", "bucket of the data subject, for erasure"),
        text("task", "task type, or unassigned", required=True, pattern=NAME),
        text("route", "route, or unassigned", required=True, pattern=ROUTE),
        closed("environment", e.Environment, "where it ran"),
        flag("stream", "whether the answer was streamed"),
        closed("status", e.AttemptStatus, "how it ended", required=True),
        small("http_status", "HTTP status of the answer"),
        closed("finish_reason", e.FinishReason, "why generation stopped"),
        small("max_tokens", "limit of output tokens that was asked for"),
        small("min_tokens", "lower limit of output tokens"),
        real("temperature", "sampling temperature"),
        real("top_p", "nucleus sampling mass"),
        small("top_k", "top-k sampling"),
        small("n", "choices asked for"),
        small("beams", "beams of a beam search"),
        real("length_penalty", "length penalty of a beam search"),
        small("stop_strings", "how many stop strings were given"),
        small("messages", "how many messages the prompt had"),
        small("tools", "how many tool definitions the prompt had"),
        moment("arrived_at", "when the attempt arrived"),
        count("queue_us", "time in the queue, microseconds"),
        count("prefill_us", "time of the prefill, microseconds"),
        count("first_token_us", "arrival to first token, microseconds"),
        count("decode_us", "time of decoding, microseconds"),
        count("total_us", "arrival to end, microseconds"),
        count("input_computed", "prompt tokens the engine saw, cached ones included"),
        count("cached_local", "prompt tokens taken from the engine's own prefix cache"),
        count("cached_external", "prompt tokens taken from an external cache"),
        count("prefill_computed", "prompt tokens whose keys and values were computed"),
        count("cache_correction", "input_computed - cached_local - cached_external - prefill_computed", signed=True),
        count("output_computed", "output tokens the engine verified"),
        count("output_delivered", "output tokens whose text reached the client"),
        count("reasoning_computed", "of output_computed: reasoning"),
        count("withheld_end_token", "computed, not delivered: end and special tokens"),
        count("withheld_stop_trimmed", "computed, not delivered: cut off with a stop string"),
        count("withheld_aborted", "computed, not delivered: the client had gone"),
        count("withheld_truncated", "computed, not delivered: beyond a limit"),
        count("drafted", "tokens proposed by speculation; accepted + rejected"),
        count("accepted", "drafted tokens that were accepted"),
        count("rejected", "drafted tokens that were rejected"),
        count("bonus", "tokens won beside accepted drafts, one per verify step"),
        count("undrafted", "output tokens of steps without a draft"),
        *_accepted_steps(),
        count("recomputed", "tokens computed again after preemption"),
        count("verify_width", "positions processed in verify steps"),
        count("padding", "padding positions processed"),
        count("forward", "positions processed by forward passes: prefill, recomputed, verify widths and padding"),
        count("attended", "keys read by attention"),
        count("attended_dense", "keys a dense causal attention would have read"),
        count("kv_appended", "KV entries (layer, head, position) written"),
        count("kv_evicted", "KV entries evicted"),
        count("kv_merged", "KV entries merged into others"),
        count("kv_kept", "KV entries alive at the end"),
        count("input_recounted", "prompt tokens found by tokenising the text again"),
        count("recount_template", "tokens the chat template adds to that text"),
        count("recount_special", "special tokens the tokenizer adds to that text"),
        flag("recount_has_template", "whether input_recounted contains the template's tokens"),
        flag("recount_has_special", "whether input_recounted contains the special tokens"),
        count("output_recounted", "output tokens found by tokenising the delivered text again"),
        flag("usage_expected", "whether a usage report should exist; null where it cannot be told"),
        small("level", "capture level: 1, 2 or 3"),
        closed("marked_reason", e.MarkReason, "why the caller marked it"),
        closed("marked_by", e.MarkedBy, "who marked it"),
        count("ids_expected", "token ids the agent said would follow in token_run; null where it said nothing"),
        flag("undated", "the record had no time; the day is the one the user named"),
        *provenance(),
    ),
    key=("attempt_lo", "attempt_hi", "source", "revision"),
)

CHILD = Table(
    "child",
    e.Domain.BILLING,
    "A choice, beam or server-side iteration of an attempt, with its own model and counts.",
    (
        *attempt_key(),
        day(),
        _source(),
        _child(),
        closed("kind", e.ChildKind, "what it is", required=True),
        small("parent_child", "the child it came from, null for the attempt"),
        text("model", "the model that served it", pattern=NAME),
        closed("finish_reason", e.FinishReason, "why it stopped"),
        count("input_computed", "prompt tokens the engine saw for it"),
        count("output_computed", "output tokens the engine verified"),
        count("output_delivered", "output tokens whose text reached the client"),
        count("output_withheld", "computed, not delivered"),
        closed("withheld_reason", e.WithheldReason, "why they were withheld"),
        count("drafted", "tokens proposed by speculation"),
        count("accepted", "drafted tokens that were accepted"),
        *provenance(),
    ),
    key=("attempt_lo", "attempt_hi", "source", "child", "revision"),
)

USAGE_REPORT = Table(
    "usage_report",
    e.Domain.BILLING,
    "What the API said about one attempt: raw leaves, one row per part of the answer that carried any.",
    (
        *attempt_key(),
        day(),
        _source(),
        _child(),
        _report(),
        small("part", "0-based order of the part within its answer", required=True),
        closed("part_kind", e.ReportPart, "which part of the answer it is", required=True),
        text("provider", "who answered", pattern=NAME),
        text("api", "which API was spoken", pattern=NAME),
        text("model", "the model the answer names, else the one asked for", pattern=NAME),
        moment("reported_at", "when the report was made"),
        closed("ended", e.Ended, "whether the answer was whole", required=True),
        text(
            "leaf_shape", "the leaves' paths in order, separated by one space; empty where there is none", required=True
        ),
        integers("leaf_integers", "per leaf: its integer, null where it is a text"),
        strings("leaf_texts", "per leaf: decimal text or enumeration, null where it is an integer"),
        strings("notes", "integral_float, strings_dropped, error_event"),
        *provenance(),
    ),
    key=("attempt_lo", "attempt_hi", "source", "child", "report", "revision", "part"),
)

READING = Table(
    "reading",
    e.Domain.BILLING,
    "What one usage report means: disjoint counts, with a verdict on how sure that is.",
    (
        *attempt_key(),
        day(),
        _source(),
        _child(),
        _report(),
        text("provider", "who answered", pattern=NAME),
        text("api", "which API was spoken", pattern=NAME),
        text("model", "the model", pattern=NAME),
        text("dialect", "the dialect that read it, null where none is known", pattern=NAME),
        closed("verdict", e.Verdict, "how sure the reading is", required=True),
        text("reason", "why, in words of the product"),
        text("rule", "the reading chosen, as convention=value pairs"),
        *(count(name, f"tokens of class {name}, all modalities") for name in REPORTED_CLASSES),
        *(count(cell.name, f"of {cell.token_class}: {cell.modality}") for cell in CROSSED_CELLS),
        count("input_total", "all input tokens reported"),
        count("output_total", "all output tokens reported"),
        count("total", "input_total + output_total"),
        count("reported_total", "the provider's own total, as it stands", signed=True),
        closed("ended", e.Ended, "whether the answer was whole", required=True),
        strings("flags", "what was noticed: usage_missing, output_incomplete, ..."),
        *provenance(),
    ),
    key=("attempt_lo", "attempt_hi", "source", "child", "report", "revision"),
)

ALIAS = Table(
    "alias",
    e.Domain.BILLING,
    "Which attempt an identifier of another system belongs to: keyed 128-bit hash of (kind, id) -> attempt.",
    (
        Column("alias_hi", attempt_key()[0].type, "first half of the keyed hash", nullable=False),
        Column("alias_lo", attempt_key()[1].type, "second half of the keyed hash", nullable=False),
        closed("kind", e.ForeignIdKind, "what kind of identifier was hashed", required=True),
        *attempt_key(),
        day(),
        _source(),
        text("segment", "file the row came from", pattern=HEX64),
    ),
    key=("alias_lo", "alias_hi", "kind", "attempt_lo", "attempt_hi", "source"),
)

FOREIGN_ID = Table(
    "foreign_id",
    e.Domain.BILLING,
    "The identifiers of other systems as they were, for disputes; restricted.",
    (
        *attempt_key(),
        day(),
        _source(),
        closed("kind", e.ForeignIdKind, "what kind of identifier it is", required=True),
        text("value", "the identifier", required=True, pattern=r"[A-Za-z0-9][A-Za-z0-9._:/@+=-]{0,199}", personal=True),
        text("segment", "file the row came from", pattern=HEX64),
    ),
    key=("attempt_lo", "attempt_hi", "source", "kind", "value"),
)

TOKEN_RUN = Table(
    "token_run",
    e.Domain.CONTENT,
    "A run of token ids of one class and origin, encrypted.",
    (
        *attempt_key(),
        day(),
        _source(),
        _child(),
        small("run", "order of the run within the attempt", required=True),
        closed("stream", e.RunStream, "which stream it belongs to", required=True),
        small("start", "position of its first token in the stream", required=True),
        small("length", "number of tokens", required=True),
        closed("token_class", e.TokenClass, "class of its tokens"),
        closed("origin", e.Origin, "where input tokens come from"),
        binary("ciphertext", "AES-256-GCM of the compressed ids of the whole block, on its first run"),
        text("key_id", "the key-encrypting key", pattern=NAME),
        text("block", "the block of (tenant, subject bucket, month) the run lies in", pattern=HEX32),
        count("block_offset", "ids of the block before this run; the run at 0 holds the ciphertext of all"),
        text(
            "tenant", "pseudonym of the tenant, or unassigned; bound to the block", pattern=f"{PSEUDONYM}|{UNASSIGNED}"
        ),
        small("subject_bucket", "bucket of the data subject; bound to the block"),
        text("month", "UTC month of the block's key, YYYY-MM; bound to the block", pattern=r"\d{4}-\d{2}"),
        text("segment", "file the row came from", pattern=HEX64),
    ),
    key=("attempt_lo", "attempt_hi", "source", "child", "run"),
)

STATE_EVENT = Table(
    "state_event",
    e.Domain.CONTENT,
    "What a sparse strategy did to a set of positions: level 3, encrypted.",
    (
        *attempt_key(),
        day(),
        _source(),
        _child(),
        small("seq", "order within the attempt", required=True),
        small("step", "engine step", required=True),
        closed("phase", e.Phase, "engine phase", required=True),
        closed("axis", e.Axis, "what was touched", required=True),
        closed("op", e.Operation, "what was done", required=True),
        small("layer_lo", "first layer"),
        small("layer_hi", "last layer, inclusive"),
        small("head_lo", "first head"),
        small("head_hi", "last head, inclusive"),
        closed("head_kind", e.HeadKind, "what heads are counted", required=True),
        closed("pos_space", e.PositionSpace, "what a position means", required=True),
        count("n_universe", "positions that could have been touched", required=True),
        count("n_members", "positions that were; stays when the set is dropped", required=True),
        closed("enc", e.Encoding, "how the set is stored", required=True),
        binary("payload", "the set"),
        binary("payload2", "destinations of a merge"),
        small("base_seq", "the event this one is a delta of"),
        closed("fidelity", e.Fidelity, "how honest the trace is", required=True),
        real("sample_p", "share of layers or steps sampled"),
        text("strategy_id", "the strategy", pattern=HEX32),
        text("key_id", "the key-encrypting key", pattern=NAME),
        text("segment", "file the row came from", pattern=HEX64),
    ),
    key=("attempt_lo", "attempt_hi", "source", "child", "seq"),
)

STRATEGY = Table(
    "strategy",
    e.Domain.OPERATIONS,
    "One distinct configuration of a sparsity strategy; dense, weight sparsity and quantisation are strategies too.",
    (
        text("strategy_id", "hash of the canonical configuration", required=True, pattern=HEX32),
        text("name", "class or method name", required=True, pattern=NAME),
        text("family", "family of strategies", required=True, pattern=NAME),
        flag("token_events", "whether it can produce token events at all", required=True),
        text("parameters", "canonical JSON of numbers and enumerations", required=True),
        text("library", "implementing library", pattern=NAME),
        text("library_version", "its version", pattern=NAME),
        text("model_revision", "revision of the weights", pattern=NAME),
        small("layers", "number of layers"),
        small("query_heads", "query heads per layer"),
        small("kv_heads", "key-value heads per layer"),
    ),
    key=("strategy_id",),
    daily=False,
)

SEGMENT = Table(
    "segment",
    e.Domain.BILLING,
    "One file or sealed spool folder that was ingested, with the account of its rows.",
    (
        text("segment", "SHA-256 of the file, or of the manifest of a sealed segment", required=True, pattern=HEX64),
        text("importer", "what read it", required=True, pattern=NAME),
        text("name", "file name without folders", required=True),
        count("bytes", "size", required=True),
        text("writer", "installation that wrote it", pattern=NAME),
        count("sequence_first", "first journal sequence"),
        count("sequence_last", "last journal sequence"),
        closed("end", e.Ended, "whether its end is known", required=True),
        count("rows_in", "records read", required=True),
        count("rows_out", "records stored", required=True),
        count("rows_quarantined", "records put into quarantine", required=True),
        count("rows_duplicate", "records that were there already, byte for byte", required=True),
        count("rows_unplaced", "of rows_out: records of tables that do not keep which file a row came from"),
        small("schema_version", "vocabulary it was written with", required=True, minimum=1),
    ),
    key=("segment",),
    daily=False,
)

GAP = Table(
    "gap",
    e.Domain.BILLING,
    "What an agent lost or could not see: a known loss is never mistaken for a discrepancy.",
    (
        day(),
        _source(),
        closed("reason", e.GapReason, "why", required=True),
        Column("attempt_hi", attempt_key()[0].type, "the attempt, where it is known"),
        Column("attempt_lo", attempt_key()[1].type, "the attempt, where it is known"),
        count("attempts", "attempts lost", required=True),
        count("tokens", "tokens lost, where known"),
        moment("began_at", "first loss"),
        moment("ended_at", "last loss"),
        text("segment", "file the row came from", pattern=HEX64),
        count("segment_row", "row in that file"),
    ),
    key=("source", "reason", "began_at", "attempt_lo", "attempt_hi", "segment", "segment_row"),
)

QUARANTINE = Table(
    "quarantine",
    e.Domain.BILLING,
    "A record that could not be read, or a stored row that breaks a rule of its table: its place, never its text.",
    (
        text("segment", "SHA-256 of the file", required=True, pattern=HEX64),
        count("line", "0-based line or row in the file", required=True),
        day(),
        _source(),
        text("importer", "what tried to read it", required=True, pattern=NAME),
        closed("reason", e.QuarantineReason, "why", required=True),
        text("path", "allow-listed path of the value that could not be read"),
        text("provider", "who answered", pattern=NAME),
        text("api", "which API was spoken", pattern=NAME),
        text("leaf_shape", "paths of the leaves that could be read"),
        integers("leaf_integers", "their integers"),
        strings("leaf_texts", "their decimal texts and enumerations"),
        text("table_name", "the table the row is stored in; null where it could not be read", pattern=NAME),
        text("rule", "the rule that does not hold for it; null where it could not be read", pattern=NAME),
    ),
    key=("segment", "line", "reason", "path", "rule"),
)

QUARANTINE_STATUS = Table(
    "quarantine_status",
    e.Domain.BILLING,
    "What was decided about records in quarantine, and what became of them: one row per change, never overwritten.",
    (
        text("entry_id", "hash of file, line, table and rule", required=True, pattern=HEX32),
        small("change", "0-based order of the changes of this entry", required=True),
        closed("state", e.QuarantineState, "its state from here on", required=True),
        text("segment", "SHA-256 of the file", required=True, pattern=HEX64),
        count("line", "0-based line or row in the file", required=True),
        text("table_name", "the table the row is stored in", pattern=NAME),
        text("rule", "the rule that did not hold for it", pattern=NAME),
        moment("changed_at", "when", required=True),
        text("changed_by", "who, as the system knows them", required=True, pattern=NAME),
        text("reason", "why, in the user's words; kept here and nowhere else", personal=True),
    ),
    key=("entry_id", "change"),
    daily=False,
)

INVOICE_LINE = Table(
    "invoice_line",
    e.Domain.BILLING,
    "One line of an invoice or cost export.",
    (
        text("invoice_id", "the invoice", required=True, pattern=NAME),
        text("line_id", "the line", required=True, pattern=NAME),
        text("provider", "who charged", required=True, pattern=NAME),
        text("account", "billing account pseudonym", pattern=NAME),
        closed("category", e.ChargeCategory, "FOCUS charge category", required=True),
        text("model", "model the line names", pattern=NAME),
        closed("token_class", e.TokenClass, "class the line charges"),
        closed("modality", e.Modality, "modality the line charges"),
        text("sku", "the provider's SKU", pattern=NAME),
        moment("period_start", "charge period, inclusive", required=True),
        moment("period_end", "charge period, exclusive", required=True),
        money("quantity", "consumed quantity"),
        text("unit", "its unit", pattern=NAME),
        money("amount", "billed cost"),
        text("currency", "ISO 4217", pattern=CURRENCY),
        *provenance(),
    ),
    key=("provider", "invoice_id", "line_id", "revision"),
    daily=False,
)

PRICE = Table(
    "price",
    e.Domain.BILLING,
    "One price of the book, per million tokens.",
    (
        text("price_id", "hash of the row's content", required=True, pattern=HEX32),
        text("provider", "who charges", required=True, pattern=NAME),
        text("match", "how the model is matched: equals, prefix or pattern", required=True),
        text("model", "the text it is matched with", required=True),
        Column("valid_from", day().type, "first UTC day, null where unknown"),
        Column("valid_to", day().type, "first UTC day on which it no longer holds, null while it does"),
        closed("token_class", e.TokenClass, "class it prices", required=True),
        closed("modality", e.Modality, "modality it prices", required=True),
        money("per_million", "price of a million tokens"),
        count("up_to_input_tokens", "the price holds for readings with at most so many input tokens, null: for any"),
        text("currency", "ISO 4217", required=True, pattern=CURRENCY),
        text("origin", "where the figure was read", required=True),
        Column("checked_on", day().type, "when it was last compared with its origin"),
    ),
    key=("price_id", "token_class", "modality"),
    daily=False,
)

PRICED_AMOUNT = Table(
    "priced_amount",
    e.Domain.BILLING,
    "What one reading costs at the price of its day, by class; modalities are inside their class.",
    (
        *attempt_key(),
        day(),
        _source(),
        _child(),
        _report(),
        closed("basis", e.PriceBasis, "which counts were priced", required=True),
        text("price_id", "the price row", pattern=HEX32),
        text("currency", "ISO 4217", pattern=CURRENCY),
        *(money(f"amount_{name}", f"cost of {name}") for name in REPORTED_CLASSES),
        money("amount", "cost of the whole reading; null where any part of it is unknown"),
        closed("status", e.PriceStatus, "priced, or why not", required=True),
        small("revision", "revision of the reading", required=True),
    ),
    key=("attempt_lo", "attempt_hi", "source", "child", "report", "basis", "revision"),
)

RECONCILED = Table(
    "reconciled",
    e.Domain.BILLING,
    "One attempt and direction: what was observed, what was reported, and how far the gap is explained.",
    (
        *attempt_key(),
        day(),
        closed("direction", e.Direction, "input or output", required=True),
        text("observer", "source of the observed figure", pattern=NAME),
        text("reporter", "source of the reported figure", pattern=NAME),
        text("provider", "who answered", pattern=NAME),
        text("api", "which API was spoken", pattern=NAME),
        text("model", "the model", pattern=NAME),
        text("tenant", "pseudonym of the tenant, or unassigned", required=True, pattern=f"{PSEUDONYM}|{UNASSIGNED}"),
        text("task", "task type, or unassigned", required=True, pattern=NAME),
        text("route", "route, or unassigned", required=True, pattern=ROUTE),
        closed("grade", e.Grade, "what the comparison rests on; null where nothing was compared"),
        count("observed", "tokens computed by the engine, else found by a recount"),
        count("reported", "tokens all usage reports of the attempt add up to"),
        count("gap", "reported - observed; a missing side counts as 0 where it was expected", signed=True),
        count("explained", "sum of the causes", signed=True),
        count("residual", "gap - explained", signed=True),
        closed("status", e.Status, "the outcome", required=True),
        closed("confidence", e.Confidence, "how the cause was established"),
        small("reports", "usage reports the attempt has", required=True),
    ),
    key=("attempt_lo", "attempt_hi", "direction"),
)

GAP_CAUSE = Table(
    "gap_cause",
    e.Domain.BILLING,
    "A named reason for part of a gap. Per attempt and direction the causes and the residual add up to the gap.",
    (
        *attempt_key(),
        day(),
        closed("direction", e.Direction, "input or output", required=True),
        text("cause", "code of the cause", required=True, pattern=r"[a-z][a-z0-9_]{2,47}"),
        count("tokens", "its part of the gap", required=True, signed=True),
        closed("confidence", e.Confidence, "how it was established", required=True),
        strings("alternatives", "other explanations of the same size, as cause+cause"),
        money("amount", "what these tokens cost at the price of their class"),
        text("currency", "ISO 4217", pattern=CURRENCY),
    ),
    key=("attempt_lo", "attempt_hi", "direction", "cause"),
)

FINDING = Table(
    "finding",
    e.Domain.BILLING,
    "What is wrong with the data: expected, observed, difference, cause, evidence, money and cure.",
    (
        text("finding_id", "hash of code, subject and period", required=True, pattern=HEX32),
        text("code", "what kind of finding", required=True, pattern=r"[a-z][a-z0-9_]{2,47}"),
        closed("severity", e.Severity, "how much it matters", required=True),
        text("period", "UTC month it is about, or all", required=True, pattern=MONTH),
        text("subject", "what it is about, as name=value pairs", required=True),
        text("tenant", "pseudonym of the tenant"),
        text("provider", "who answered", pattern=NAME),
        text("model", "the model", pattern=NAME),
        count("rows", "how many rows it stands for", required=True),
        count("expected", "expected figure", signed=True),
        count("observed", "observed figure", signed=True),
        count("difference", "observed - expected", signed=True),
        text("unit", "unit of the figures", required=True, pattern=NAME),
        text("cause", "code of the cause"),
        closed("grade", e.Grade, "what it rests on"),
        closed("confidence", e.Confidence, "how the cause was established", required=True),
        money("amount", "money at stake; positive where too much was charged; null where no price is known"),
        text("currency", "ISO 4217", pattern=CURRENCY),
        strings("evidence", "attempt ids, lowest first, at most 20", personal=True),
        strings("segments", "digests of the files the evidence came from"),
        Column("first_day", day().type, "first UTC day of the rows"),
        Column("last_day", day().type, "last UTC day of the rows"),
        text("cure", "what to do, in one sentence", required=True),
        closed("origin", e.FindingOrigin, "the room that found it", required=True),
    ),
    key=("finding_id",),
    daily=False,
)

FINDING_STATUS = Table(
    "finding_status",
    e.Domain.BILLING,
    "The life of findings: one row per change, never overwritten.",
    (
        text("finding_id", "the finding", required=True, pattern=HEX32),
        small("change", "0-based order of the changes of this finding", required=True),
        closed("state", e.FindingState, "its state from here on", required=True),
        moment("changed_at", "when", required=True),
        text("changed_by", "who, as the system knows them", required=True, pattern=NAME),
        text("reason", "why, in the user's words; kept here and nowhere else", personal=True),
        Column("expires_on", day().type, "a waiver ends on this UTC day"),
    ),
    key=("finding_id", "change"),
    daily=False,
)

BASELINE = Table(
    "baseline",
    e.Domain.BILLING,
    "One cell on one day: the limits it had, and how the day stood to them.",
    (
        day(),
        text("tenant", "pseudonym of the tenant, or unassigned", required=True, pattern=f"{PSEUDONYM}|{UNASSIGNED}"),
        text("task", "task type, or unassigned", required=True, pattern=NAME),
        text("model", "the model that answered, else the one asked for", pattern=NAME),
        text("model_revision", "revision of its weights", pattern=NAME),
        text("tokenizer", "fingerprint of its tokenizer", pattern=NAME),
        text("strategy_id", "the strategy", pattern=HEX32),
        closed("measure", e.Measure, "what is measured", required=True),
        closed("token_class", e.TokenClass, "class of the tokens; null where no tokens are measured"),
        closed("method", e.BaselineMethod, "how limits and test were made", required=True),
        closed("season", e.Season, "finest season that was taken off; null where rows have none"),
        count("rows", "rows in the reference window", required=True),
        count("days", "days of the reference window that have rows", required=True),
        real("centre", "seasonal centre of the day's rows, log(1 + tokens); of a day's count, log(1 + count)"),
        count("lower", "lower end of the tolerance band at that centre, tokens"),
        count("upper", "upper end of the tolerance band at that centre, tokens"),
        real("promise", "promised rate of rows beyond either end"),
        count("limit", "limit of single requests at that centre, tokens; null where it is refused"),
        count("day_rows", "rows of the day", required=True),
        count("exceeding", "of them: above the upper end, each at its own centre"),
        count("beyond_limit", "of them: above the limit of single requests"),
        count("median", "median of the day's rows, tokens"),
        count("expected", "what the day was expected to have: tokens, requests or retries"),
        count("observed", "what it had", required=True),
        real("p_value", "chance of such a day if nothing changed; null where it was not tested"),
        flag("reported", "found among all cells of the day, and large enough in money", required=True),
        closed("driver", e.Driver, "what moved"),
        text("key", "of a burst: the key or route it came by, as name=value", pattern=r"[a-z_]+=.{1,128}"),
        money("amount", "cost of what is more than expected; null where no price is known"),
        text("currency", "ISO 4217", pattern=CURRENCY),
        flag("kept", "whether the cell's reference window kept the promise; null where that cannot be tested"),
        count("test_days", "days of the reference window the promise was tested on"),
        count("test_alarms", "of them: days that would have been an alarm at the promise"),
        real("dispersion", "how far those days scatter: 1 where rows of a day have nothing in common"),
        real("cluster", "how many rows count as one in the test, because rows of a day have something in common"),
        strings("evidence", "attempt ids behind a reported row, lowest first, at most 20", personal=True),
    ),
    key=("tenant", "task", "model", "model_revision", "tokenizer", "strategy_id", "measure", "token_class", "day"),
)

ADJUSTMENT = Table(
    "adjustment",
    e.Domain.BILLING,
    "A correction of a closed month, booked in the open one.",
    (
        text("adjustment_id", "hash of its content", required=True, pattern=HEX32),
        text("period", "open month it is booked in", required=True, pattern=MONTH),
        text("corrects", "closed month it corrects", required=True, pattern=MONTH),
        text("reason", "late_data, report_correction or price_correction", required=True, pattern=NAME),
        text("provider", "who answered", pattern=NAME),
        text("model", "the model", pattern=NAME),
        text("tenant", "pseudonym of the tenant, or unassigned", pattern=f"{PSEUDONYM}|{UNASSIGNED}"),
        text("task", "task type, or unassigned", pattern=NAME),
        count("tokens", "tokens added or taken away", signed=True),
        money("amount", "money added or taken away"),
        text("currency", "ISO 4217", pattern=CURRENCY),
        count("rows", "rows it stands for", required=True),
        strings("segments", "digests of the files behind it"),
    ),
    key=("adjustment_id",),
    daily=False,
)

CLOSE = Table(
    "close",
    e.Domain.BILLING,
    "The frozen result of a month.",
    (
        text("period", "the month", required=True, pattern=MONTH),
        text("root", "Merkle root of the close pack", required=True, pattern=HEX64),
        text("figures_digest", "digest of the figures", required=True, pattern=HEX64),
        text("prices_digest", "digest of the price rows used", required=True, pattern=HEX64),
        text("rules_digest", "digest of the dialects and causes", required=True, pattern=HEX64),
        text("code_version", "version of the product", required=True, pattern=NAME),
        text("code_digest", "digest of its source files", required=True, pattern=HEX64),
        text("lock_digest", "digest of the installed versions", required=True, pattern=HEX64),
        count("rows", "rows in the pack", required=True),
        moment("closed_at", "when", required=True),
        text("closed_by", "who", required=True, pattern=NAME),
        text("early_reason", "why before its time, in the user's words; null where it was not", personal=True),
    ),
    key=("period",),
    daily=False,
)

RECEIPT = Table(
    "receipt",
    e.Domain.BILLING,
    "Proof of a deletion.",
    (
        text("receipt_id", "hash of its content", required=True, pattern=HEX32),
        text("rule", "retention rule or request", required=True, pattern=NAME),
        text("scope", "what was in scope, as name=value pairs", required=True),
        text("table_name", "the table", required=True, pattern=NAME),
        Column("first_day", day().type, "first UTC day erased"),
        Column("last_day", day().type, "last UTC day erased"),
        count("rows", "rows erased", required=True),
        text("digest_before", "digest of what was there", pattern=HEX64),
        closed("method", e.ReceiptMethod, "how", required=True),
        strings("key_ids", "keys destroyed"),
        count("table_version", "version of the table afterwards"),
        moment("erased_at", "when", required=True),
        text("erased_by", "who or what", required=True, pattern=NAME),
    ),
    key=("receipt_id",),
    daily=False,
)

SHARED_HISTOGRAM = Table(
    "shared_histogram",
    e.Domain.SHARED,
    "How many attempts of a cell lie between two bounds, for everybody: never fewer than 11.",
    (
        day(),
        text("provider", "who answered; null: the rest of the day, whose providers are too few to tell", pattern=NAME),
        text("model", "the model; null: the rest of that provider", pattern=NAME),
        text("task", "task type; null: the rest of that model", pattern=NAME),
        closed("measure", e.SharedMeasure, "what is counted by", required=True),
        text(
            "unit",
            "unit of the bounds: tokens, us, hour, or a currency whose millionths are meant",
            required=True,
            pattern=NAME,
        ),
        count("low", "least value, inclusive; null: not known, or in a bin too small to tell"),
        count("high", "greatest value, inclusive; null with low"),
        Column("attempts", attempt_key()[0].type, "how many attempts", nullable=False, minimum=11),
    ),
    key=("provider", "model", "task", "measure", "unit", "low", "day"),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        REQUEST_SCOPE,
        ATTEMPT,
        CHILD,
        USAGE_REPORT,
        READING,
        ALIAS,
        FOREIGN_ID,
        TOKEN_RUN,
        STATE_EVENT,
        STRATEGY,
        SEGMENT,
        GAP,
        QUARANTINE,
        QUARANTINE_STATUS,
        INVOICE_LINE,
        PRICE,
        PRICED_AMOUNT,
        RECONCILED,
        GAP_CAUSE,
        FINDING,
        FINDING_STATUS,
        BASELINE,
        ADJUSTMENT,
        CLOSE,
        RECEIPT,
        SHARED_HISTOGRAM,
    )
}
