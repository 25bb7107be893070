"""The closed enumerations. A member never changes its meaning; new ones are added at the end (see `version`)."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """How sure the reading of one usage report is."""

    PROVED = "PROVED"  # exactly one reading satisfies the total, non-negativity and sub-count <= parent
    ASSUMED = "ASSUMED"  # several do; the dialect's declared convention decides
    CONTRADICTORY = "CONTRADICTORY"  # none does; kept, flagged, not priced
    UNKNOWN = "UNKNOWN"  # no counts, or no dialect for them; the reason says which


class Status(StrEnum):
    """What became of an amount when it was compared."""

    MATCHED = "MATCHED"
    EXPLAINED = "EXPLAINED"  # the causes add up to the gap
    UNEXPLAINED = "UNEXPLAINED"  # a residual is left
    PROVISIONAL = "PROVISIONAL"  # the period is open, data may still come
    NOT_COMPARED = "NOT_COMPARED"  # only one side exists and no other was expected


class Grade(StrEnum):
    """What the comparison rests on."""

    G1 = "G1"  # generated ids seen by our own agent: tolerance 0
    G2 = "G2"  # identity with calibrated constants
    G3 = "G3"  # re-tokenised text
    G4 = "G4"  # predicted


class MatchedBy(StrEnum):
    """By what an attempt and its usage reports met."""

    KEY = "key"  # one recorder wrote both, or its id was carried along
    ALIAS = "alias"  # two sources know the attempt by one identifier of another system
    REQUEST = "request"  # two sources know the request, and it can be no other of its attempts
    TIME = "time"  # the identifier was used several times; time and parameters leave one
    AMBIGUOUS = "ambiguous"  # several are possible; the candidates are kept


class Severity(StrEnum):
    """How much a finding matters, least first."""

    INFO = "info"
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"


class FindingOrigin(StrEnum):
    """Which room found it; a room replaces its own findings of a period and never those of another."""

    RECONCILE = "reconcile"
    VALIDATE = "validate"
    BASELINE = "baseline"
    CLOSE = "close"
    RETENTION = "retention"
    PRICE = "price"
    ENGINE = "engine"  # engine counters against the sum of attempts
    INVOICE = "invoice"
    AUDIT = "audit"
    PROBE = "probe"
    COMPARE = "compare"  # runs with a strategy off and on


class FindingState(StrEnum):
    """The life of a finding."""

    OPEN = "open"
    ACKNOWLEDGED = "acknowledged"
    WAIVED = "waived"
    DISPUTED = "disputed"
    CREDITED = "credited"
    CLOSED = "closed"


class ConfigKind(StrEnum):
    """What a value of the configuration is part of."""

    SETTINGS = "settings"
    PRICES = "prices"
    MAPPING = "mapping"
    STRATEGY = "strategy"  # a recommended parameter: proposed, applied, verified, refused
    ACCESS = "access"  # no value: content of an attempt was opened, and shown to somebody


class Confidence(StrEnum):
    """How the cause of a finding was established."""

    CERTAIN = "certain"  # the evidence states the cause and the exact amount
    PROBABLE = "probable"  # the amount fits exactly one documented cause
    AMBIGUOUS = "ambiguous"  # it fits more than one; the alternatives are kept
    NONE = "none"  # no cause fits


class TokenClass(StrEnum):
    """The disjoint leaves of the token lattice. Their sum is the whole; no token is in two of them."""

    INPUT_UNCACHED = "input_uncached"
    CACHE_READ = "cache_read"
    CACHE_WRITE_5M = "cache_write_5m"
    CACHE_WRITE_1H = "cache_write_1h"
    CACHE_WRITE_UNKNOWN = "cache_write_unknown"
    OUTPUT_VISIBLE = "output_visible"
    REASONING = "reasoning"
    OUTPUT_WITHHELD = "output_withheld"  # engine side only: computed, not delivered


class Direction(StrEnum):
    """Which way a token travels, seen from the model."""

    INPUT = "input"
    OUTPUT = "output"


class Modality(StrEnum):
    """What a token stands for; a dimension crossed with the class."""

    TEXT = "text"
    AUDIO = "audio"
    IMAGE = "image"
    VIDEO = "video"


class WithheldReason(StrEnum):
    """Why a computed output token did not reach the client."""

    END_TOKEN = "end_token"  # noqa: S105 - the end-of-sequence token, not a password
    STOP_TRIMMED = "stop_trimmed"
    ABORTED = "aborted"
    TRUNCATED = "truncated"


class Axis(StrEnum):
    """The axes on which a sparse strategy may touch a token."""

    INPUT = "input"
    COMPUTE = "compute"
    STORE = "store"
    ATTEND = "attend"
    EMIT = "emit"
    SCHEDULE = "schedule"


class Operation(StrEnum):
    """What a state event did to its positions."""

    DROP = "DROP"
    KEEP = "KEEP"
    RUN = "RUN"
    SKIP = "SKIP"
    RECOMPUTE = "RECOMPUTE"
    REVIVE = "REVIVE"
    PAD = "PAD"
    KEEP_ONLY = "KEEP_ONLY"
    EVICT = "EVICT"
    APPEND = "APPEND"
    MERGE = "MERGE"
    DEMOTE = "DEMOTE"
    RESTORE = "RESTORE"
    REUSE = "REUSE"
    SELECT = "SELECT"
    MASK = "MASK"
    DRAFT = "DRAFT"
    ACCEPT = "ACCEPT"
    REJECT = "REJECT"
    BONUS = "BONUS"
    TRUNCATE = "TRUNCATE"
    PREEMPT = "PREEMPT"
    RESUME = "RESUME"


OPERATIONS_OF_AXIS: dict[Axis, tuple[Operation, ...]] = {
    Axis.INPUT: (Operation.DROP, Operation.KEEP),
    Axis.COMPUTE: (Operation.RUN, Operation.SKIP, Operation.RECOMPUTE, Operation.REVIVE, Operation.PAD),
    Axis.STORE: (
        Operation.KEEP_ONLY,
        Operation.EVICT,
        Operation.APPEND,
        Operation.MERGE,
        Operation.DEMOTE,
        Operation.RESTORE,
        Operation.REUSE,
    ),
    Axis.ATTEND: (Operation.SELECT, Operation.MASK),
    Axis.EMIT: (Operation.DRAFT, Operation.ACCEPT, Operation.REJECT, Operation.BONUS, Operation.TRUNCATE),
    Axis.SCHEDULE: (Operation.PREEMPT, Operation.RESUME),
}


class Phase(StrEnum):
    """The engine phase of a state event."""

    PREFILL = "prefill"
    DECODE = "decode"
    VERIFY = "verify"
    RESUME = "resume"


class HeadKind(StrEnum):
    """What the head range of a state event counts."""

    NONE = "none"
    QUERY = "q"
    KEY_VALUE = "kv"
    GROUP = "group"


class PositionSpace(StrEnum):
    """What a position in a state event means."""

    CHARS = "chars"
    PROMPT = "prompt"
    SEQUENCE = "sequence"
    OUTPUT = "output"
    PAGE = "page"
    DRAFT_NODE = "draft_node"


class Encoding(StrEnum):
    """How the set of positions of a state event is stored."""

    ALL = "ALL"
    RULE = "RULE"
    RANGES = "RANGES"
    BITMAP_Z = "BITMAP_Z"
    DELTA = "DELTA"
    COUNT = "COUNT"
    DIGEST = "DIGEST"


class Fidelity(StrEnum):
    """How honest a trace is."""

    EXACT = "exact"
    RULE = "rule"
    SAMPLED_LAYERS = "sampled_layers"
    COUNTS = "counts"


class Origin(StrEnum):
    """Where an input token comes from: the second axis of input."""

    SYSTEM = "system"
    TEMPLATE = "template"
    USER = "user"
    HISTORY = "history"
    TOOL = "tool"
    CONTEXT = "context"


class RunStream(StrEnum):
    """Which stream a token run belongs to."""

    PROMPT = "prompt"
    OUTPUT = "output"
    REASONING = "reasoning"
    DRAFT = "draft"


class Environment(StrEnum):
    """Where an attempt ran."""

    PRODUCTION = "production"
    DEVELOPMENT = "development"
    PILOT = "pilot"


class AttemptStatus(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ABORTED = "aborted"
    REJECTED = "rejected"  # answered without work: 4xx, rate limit
    UNKNOWN = "unknown"


class FinishReason(StrEnum):
    """Why generation stopped, in the product's own closed words."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_CALLS = "tool_calls"
    CONTENT_FILTER = "content_filter"
    ERROR = "error"
    ABORT = "abort"
    OTHER = "other"


class Ended(StrEnum):
    """Whether a usage report is that of a whole answer."""

    COMPLETE = "complete"
    CUT = "cut"
    ERROR = "error"
    UNKNOWN = "unknown"


class ReportPart(StrEnum):
    """Which part of an answer a usage report was read from. How parts merge is the dialect's business."""

    WHOLE = "whole"  # the body of a non-streamed answer
    START = "start"  # the first event of a stream that opens with counts
    DELTA = "delta"  # a later event that revises the first
    RUNNING = "running"  # a running total inside a stream
    FINAL = "final"  # the closing event of a stream
    HEADER = "header"  # response headers


class ChildKind(StrEnum):
    """What a child of an attempt is."""

    CHOICE = "choice"
    BEAM = "beam"
    ITERATION = "iteration"
    PROMPT = "prompt"


class Stage(StrEnum):
    """The component of a team's own pipeline that a request scope stands for."""

    REQUEST = "request"
    PRE_PROCESSING = "pre_processing"
    RETRIEVAL = "retrieval"
    CONTEXT_BUILDING = "context_building"
    MODEL_CALL = "model_call"
    POST_PROCESSING = "post_processing"
    OTHER = "other"


class ForeignIdKind(StrEnum):
    """The kinds of identifiers of other systems that are kept, in the restricted table only."""

    PROVIDER_RESPONSE_ID = "provider_response_id"
    CLIENT_REQUEST_ID = "client_request_id"
    RECORD_ID = "record_id"
    TRACE_ID = "trace_id"
    SPAN_ID = "span_id"


class GapReason(StrEnum):
    """What an agent lost or could not see."""

    BUFFER_FULL = "buffer_full"
    QUOTA = "quota"
    DISK_FULL = "disk_full"
    READ_ONLY = "read_only"
    SLOW_DISK = "slow_disk"
    SHUTDOWN = "shutdown"
    FORK = "fork"
    CALLBACK_ERROR = "callback_error"
    UNSUPPORTED_VERSION = "unsupported_version"
    NO_KEY = "no_key"
    IDS_MISSING = "ids_missing"
    SERIALISE = "serialise"
    CORRUPT = "corrupt"
    NOT_SEEN = "not_seen"
    # What an engine recorded of a call may be another's: nothing is lost, and the two do not meet.
    AMBIGUOUS = "ambiguous"
    # A hook was installed, and nothing ever ran through it: the model may run in another process.
    NEVER_CALLED = "never_called"


class QuarantineReason(StrEnum):
    """Why a record could not be read, or a stored row is held. Its text is never kept."""

    NOT_JSON = "not_json"
    NOT_AN_OBJECT = "not_an_object"
    TYPE = "type"
    RANGE = "range"  # at or above 2**63
    FRACTION = "fraction"
    NOT_A_NUMBER = "not_a_number"  # NaN and the infinities
    TOO_DEEP = "too_deep"
    TOO_LARGE = "too_large"
    DUPLICATE_KEY = "duplicate_key"
    MISSING_FIELD = "missing_field"
    BAD_TIME = "bad_time"
    BAD_IDENTIFIER = "bad_identifier"
    NEGATIVE_TIME = "negative_time"
    SCHEMA = "schema"
    CONTRACT = "contract"  # it was read and is stored, and a rule of its table does not hold for it


class QuarantineState(StrEnum):
    """What was decided about a record in quarantine, or became of it."""

    RELEASED = "released"  # a person says that the row may stand as it is
    READ = "read"  # its file was read again, and it could be read


class ChargeCategory(StrEnum):
    """FOCUS charge categories of an invoice line."""

    USAGE = "Usage"
    PURCHASE = "Purchase"
    TAX = "Tax"
    CREDIT = "Credit"
    ADJUSTMENT = "Adjustment"


class LineKind(StrEnum):
    """What a line of an invoice charges, in our words; a line of which that is not known has none."""

    TOKENS = "tokens"
    TOOL_FEE = "tool_fee"
    REQUEST_FEE = "request_fee"
    STORAGE = "storage"
    COMMITMENT = "commitment"  # what is paid for a commitment, its shortfall included
    MINIMUM = "minimum"
    DISCOUNT = "discount"
    CREDIT = "credit"
    TAX = "tax"
    ROUNDING = "rounding"
    OTHER_SERVICE = "other_service"  # of a service of the provider's that serves no model


class BillingStatus(StrEnum):
    """Whether a billing period can still get charges; a closed one is not reopened."""

    OPEN = "Open"
    CLOSED = "Closed"


class ChargedBy(StrEnum):
    """What a cell of our own usage is held against."""

    USAGE_PAGE = "usage_page"
    INVOICE = "invoice"


class AllocatedAs(StrEnum):
    """How money or tokens came to a team."""

    DIRECT = "direct"  # a rule names whose it is
    SHARED = "shared"  # its part of what all teams share
    UNASSIGNED = "unassigned"  # no rule names whose it is
    IDLE = "idle"  # of own machines: time that no token was computed in


class PriceBasis(StrEnum):
    """Which counts an amount was computed from."""

    REPORTED = "reported"
    COMPUTED = "computed"  # the own-GPU cost model only
    INVOICED = "invoiced"


class PriceStatus(StrEnum):
    """Whether a reading could be priced, and if not, why not. Unknown price is never price 0."""

    PRICED = "priced"
    NO_PRICE = "no_price"  # no row of the price book matches provider, model and day
    CLASS_UNPRICED = "class_unpriced"  # a row matches but has no price for a class that has tokens
    SPLIT_UNKNOWN = "split_unknown"  # classes of different price are reported only as a sum
    NO_COUNTS = "no_counts"
    CONTRADICTORY = "contradictory"
    TERMS_UNPRICED = "terms_unpriced"  # the model has a price, but none for the tier, batch or region it was served on
    TERMS_UNKNOWN = "terms_unknown"  # terms of different price fit, and which of them held is not told
    FEE_UNPRICED = "fee_unpriced"  # a row matches but has no price for a tool that was used


class MarkReason(StrEnum):
    """Why a caller marked an attempt for a closer look."""

    INCIDENT = "incident"
    AUDIT = "audit"
    EXPERIMENT = "experiment"
    DISPUTE = "dispute"


class MarkedBy(StrEnum):
    """Who may mark an attempt."""

    PLATFORM = "platform"
    FINOPS = "finops"
    AUDITOR = "auditor"
    PRIVACY = "privacy"


class Domain(StrEnum):
    """The privacy domain (the folder of the lake) a table lives in."""

    BILLING = "billing"
    OPERATIONS = "operations"
    CONTENT = "content"
    SHARED = "shared"


class SharedMeasure(StrEnum):
    """What a released histogram counts attempts by."""

    ARRIVAL = "arrival"  # hour of the UTC day
    INPUT_REPORTED = "input_reported"
    OUTPUT_REPORTED = "output_reported"
    CACHE_READ = "cache_read"
    REASONING = "reasoning"
    INPUT_OBSERVED = "input_observed"
    OUTPUT_OBSERVED = "output_observed"
    AMOUNT = "amount"  # money, in millionths of its currency
    QUEUE = "queue"
    FIRST_TOKEN = "first_token"  # noqa: S105 - a time, not a password
    DURATION = "duration"


class ReceiptMethod(StrEnum):
    """How data was erased."""

    KEY_DESTROYED = "key_destroyed"
    DELETED = "deleted"
    BOTH = "both"
    CLEARED = "cleared"  # the row stays, what it said of somebody was taken out of it


class Measure(StrEnum):
    """What a baseline is the baseline of."""

    TOKENS = "tokens"  # of one class in one request
    REQUESTS = "requests"  # of one day
    RETRIES = "retries"  # attempts of one day that were not the first of their request
    INPUT = "input"  # all input tokens of one request, beside the band declared for its task
    OUTPUT = "output"  # all output tokens of one request, likewise


class BaselineMethod(StrEnum):
    """How limits were made, and with them the test of a day."""

    OWN_ROWS = "own_rows"  # order statistics of the cell's own rows: exact whatever their distribution
    SIBLINGS = "siblings"  # too few rows, or rows of a day that go together: whole days beside those of sibling cells
    DAY_COUNTS = "day_counts"  # counts of whole days beside those of all series
    SHARE = "share"  # how many of the rows of reference and day are marked: exact
    TASK_TABLE = "task_table"  # the band declared for the task; it needs no history
    REFUSED = "refused"  # too little history, also of siblings: no limit is made up


class Season(StrEnum):
    """The finest season that was taken off before limits were made, in UTC."""

    HOUR_OF_WEEK = "hour_of_week"
    HOUR_OF_DAY = "hour_of_day"
    NONE = "none"


class Driver(StrEnum):
    """What moved where a cell left its baseline."""

    REQUEST_VOLUME = "request_volume"
    KEY_BURST = "key_burst"  # most of the additional requests came from one key, or by one route
    MODEL_MIX = "model_mix"  # requests of a task went to another model, version or strategy
    RETRIES = "retries"
    CACHE_SHARE = "cache_share"
    INPUT_PER_REQUEST = "input_per_request"
    OUTPUT_PER_REQUEST = "output_per_request"


class EngineCounter(StrEnum):
    """What a counter of a serving engine counts, whatever the engine and its version call it."""

    PROMPT_TOKENS = "prompt_tokens"
    PROMPT_TOKENS_BY_SOURCE = "prompt_tokens_by_source"  # the same tokens again, by where they came from
    PROMPT_TOKENS_CACHED = "prompt_tokens_cached"
    PROMPT_TOKENS_CACHED_BY_SOURCE = "prompt_tokens_cached_by_source"  # those again, by where the cache lay
    PROMPT_TOKENS_RECOMPUTED = "prompt_tokens_recomputed"
    PREFIX_CACHE_QUERIES = "prefix_cache_queries"
    PREFIX_CACHE_HITS = "prefix_cache_hits"
    EXTERNAL_PREFIX_CACHE_QUERIES = "external_prefix_cache_queries"
    EXTERNAL_PREFIX_CACHE_HITS = "external_prefix_cache_hits"
    PREFIX_CACHE_EVICTED = "prefix_cache_evicted"
    GENERATION_TOKENS = "generation_tokens"
    FORWARD_TOKENS = "forward_tokens"  # as the scheduler ran them, by mode
    PREEMPTIONS = "preemptions"
    RETRACTED_INPUT_TOKENS = "retracted_input_tokens"
    RETRACTED_OUTPUT_TOKENS = "retracted_output_tokens"
    REQUESTS_FINISHED = "requests_finished"
    REQUESTS_ABORTED = "requests_aborted"
    REQUESTS_REJECTED = "requests_rejected"
    # Sums and numbers of samples of histograms that are about finished requests, or about single tokens.
    FINISHED_PROMPT_TOKENS = "finished_prompt_tokens"
    FINISHED_GENERATION_TOKENS = "finished_generation_tokens"
    FINISHED_PREFILL_COMPUTED = "finished_prefill_computed"
    FINISHED_SAMPLES = "finished_samples"
    FIRST_TOKEN_SAMPLES = "first_token_samples"  # noqa: S105 - tokens of a model
    INTER_TOKEN_SAMPLES = "inter_token_samples"  # noqa: S105 - the same
    DRAFTS = "drafts"
    DRAFTED_TOKENS = "drafted_tokens"
    ACCEPTED_TOKENS = "accepted_tokens"
    PROMPT_TOKENS_COMPUTED = "prompt_tokens_computed"  # prompts as far as they were processed, cached tokens left out
    # Prompts and answers that were scheduled again after preemption, and what of them the prefix cache still had.
    PREEMPTED_QUERIES = "preempted_queries"
    PREEMPTED_HITS = "preempted_hits"
    RECOMPUTED = "recomputed"  # the one less the other: worked out, no engine shows it


class TierRule(StrEnum):
    """Which tokens pay the price above a length of input."""

    CLIFF = "cliff"  # all tokens of the reading
    MARGINAL = "marginal"  # those beyond the threshold


class FeeKind(StrEnum):
    """What is charged by use, beside tokens."""

    REQUEST = "request"  # the call itself
    REQUEST_LOW = "request_low"  # the call itself, by how much a search may bring into the context
    REQUEST_MEDIUM = "request_medium"
    REQUEST_HIGH = "request_high"
    WEB_SEARCH = "web_search"
    WEB_FETCH = "web_fetch"
    X_SEARCH = "x_search"
    FILE_SEARCH = "file_search"
    DOCUMENT_SEARCH = "document_search"
    CODE_EXECUTION = "code_execution"
    MCP = "mcp"
    IMAGE_GENERATION = "image_generation"
    SOURCE = "source"  # a source that a search used
    SEARCH_QUERY = "search_query"
    CITATION_TOKEN = "citation_token"  # noqa: S105 - tokens of a model
    SERVER_TOOL = "server_tool"  # a tool of the provider's whose name is not told
    SEARCH_UNIT = "search_unit"  # of a reranking
    AUDIO_SECOND = "audio_second"


class CounterUnit(StrEnum):
    """What an engine's counter counts in."""

    TOKENS = "tokens"
    BLOCKS = "blocks"  # of the prefix cache; how many tokens one holds is a setting of the server
    REQUESTS = "requests"
    EVENTS = "events"


class AuditMeasure(StrEnum):
    """What of an answer is held against its bill."""

    INPUT = "input"
    OUTPUT = "output"  # without the reasoning that is reported, where nobody but the provider sees it
    HIDDEN_REASONING = "hidden_reasoning"  # beside what calibrated traffic has for as much visible output
    UNCACHED_INPUT = "uncached_input"  # input that is charged as fresh


class Script(StrEnum):
    """What a text is mostly written in; as much of its language as is kept."""

    LATIN = "latin"
    GREEK = "greek"
    CYRILLIC = "cyrillic"
    HEBREW = "hebrew"
    ARABIC = "arabic"
    INDIC = "indic"
    THAI = "thai"
    HAN = "han"
    KANA = "kana"  # Japanese: kana, and han beside it
    HANGUL = "hangul"
    OTHER = "other"
    MIXED = "mixed"  # no script has most of the letters
    NONE = "none"  # no letters


class AuditVerdict(StrEnum):
    """What an audit says of a cell in a month, least first."""

    CLEAN = "clean"
    UNDECIDED = "undecided"  # too few answers, or none of them tells anything
    NOT_CALIBRATED = "not_calibrated"  # nothing says how much honest traffic of the cell differs
    CONVENTION = "convention"  # a constant offset, whatever the size of the answer
    UNDERBILLED = "underbilled"
    SUSPECTED = "suspected"  # too much is reported, and something is missing for an accusation
    IDENTITY_BROKEN = "identity_broken"  # counted by our own engine, and reported otherwise
    ACCUSED = "accused"


class Judgement(StrEnum):
    """What a comparison says of a strategy beside its baseline."""

    WORSE = "worse"  # of a measure, the whole interval lies beyond the margin
    NOT_WORSE = "not_worse"  # of every measure that decides, the whole interval lies inside of it
    UNDECIDED = "undecided"  # neither can be said with so many pairs
    NO_EFFECT = "no_effect"  # nothing shows that the strategy was on


class RecommendationState(StrEnum):
    """How far a recommended strategy has come."""

    PROPOSED = "proposed"
    APPLIED = "applied"
    VERIFIED = "verified"  # a comparison after it was applied found it not worse
    REFUSED = "refused"  # somebody did not want it, or a later comparison found it worse


ENUMERATIONS: dict[str, type[StrEnum]] = {
    member.__name__: member
    for member in (
        Verdict,
        Status,
        MatchedBy,
        Grade,
        Severity,
        FindingOrigin,
        FindingState,
        ConfigKind,
        Confidence,
        TokenClass,
        Direction,
        Modality,
        WithheldReason,
        Axis,
        Operation,
        Phase,
        HeadKind,
        PositionSpace,
        Encoding,
        Fidelity,
        Origin,
        RunStream,
        Environment,
        AttemptStatus,
        FinishReason,
        Ended,
        ReportPart,
        ChildKind,
        Stage,
        ForeignIdKind,
        GapReason,
        QuarantineReason,
        QuarantineState,
        ChargeCategory,
        LineKind,
        BillingStatus,
        ChargedBy,
        AllocatedAs,
        PriceBasis,
        PriceStatus,
        MarkReason,
        MarkedBy,
        Domain,
        ReceiptMethod,
        SharedMeasure,
        Measure,
        BaselineMethod,
        Season,
        Driver,
        EngineCounter,
        CounterUnit,
        TierRule,
        FeeKind,
        Script,
        AuditMeasure,
        AuditVerdict,
        Judgement,
        RecommendationState,
    )
}
