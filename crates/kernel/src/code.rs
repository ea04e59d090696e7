//! The stable codes that users see, each with a page under `docs/errors/`. A code is never given a second meaning.

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)+) => {
        $($(#[$doc])* pub const $name: &str = $code;)+

        /// Every code, in order.
        pub const ALL: &[&str] = &[$($name,)+];
    };
}

codes! {
    /// An id or name that is not allowed.
    INVALID_ID = "SF0101",
    /// No workflow of that name is registered.
    UNKNOWN_WORKFLOW = "SF0102",
    /// There is a run of that id already, with another workflow or input.
    RUN_EXISTS = "SF0103",
    /// There is no run of that id.
    RUN_NOT_FOUND = "SF0104",
    /// The run has ended; nothing changes it any more.
    RUN_ENDED = "SF0105",
    /// An input or output is larger than allowed.
    PAYLOAD_TOO_LARGE = "SF0106",
    /// A value cannot be turned into bytes, or bytes cannot be turned into the value that was asked for.
    PAYLOAD_UNREADABLE = "SF0107",
    /// A report about something that is no longer so.
    STALE = "SF0108",
    /// The run failed.
    RUN_FAILED = "SF0109",
    /// A setting that cannot be.
    INVALID_SETTING = "SF0110",
    /// Too many signals of a run wait to be taken.
    TOO_MANY_SIGNALS = "SF0111",
    /// An answer to a question that nobody asks.
    NOT_ASKED = "SF0112",
    /// The run is in a status in which that cannot be done.
    WRONG_STATUS = "SF0113",
    /// The run has no record of that step.
    STEP_NOT_FOUND = "SF0114",
    /// There is no dead letter of that id.
    LETTER_NOT_FOUND = "SF0115",
    /// The workflow does not take that input.
    INVALID_INPUT = "SF0116",
    /// There is no key of that name.
    KEY_NOT_FOUND = "SF0117",
    /// The key belongs to somebody else.
    KEY_OWNED = "SF0118",
    /// The key has another revision than the one that was asked for.
    KEY_CHANGED = "SF0119",
    /// A time to live that cannot be.
    INVALID_TTL = "SF0120",
    /// Nobody can be called back so.
    CALLBACK_NOT_ALLOWED = "SF0121",
    /// Too many ends of a key are still to be told.
    TOO_MANY_ENDS = "SF0122",
    /// There is a plan of that id already, which is another one.
    PLAN_EXISTS = "SF0123",
    /// There is no plan of that id.
    PLAN_NOT_FOUND = "SF0124",
    /// The plan is in a status in which that cannot be done.
    PLAN_STATUS = "SF0125",
    /// Tenants of a plan are locked by others.
    TENANTS_LOCKED = "SF0126",
    /// Nobody has the lock of that tenant.
    LOCK_NOT_FOUND = "SF0127",
    /// That tenant has no task.
    TASK_NOT_FOUND = "SF0128",
    /// The task has no checkpoint.
    CHECKPOINT_NOT_FOUND = "SF0129",
    /// A plan that cannot be.
    INVALID_PLAN = "SF0130",
    /// No plan of that name is known.
    UNKNOWN_PLAN = "SF0131",
    /// Another instance has it.
    ELSEWHERE = "SF0132",
    /// What instances share cannot be used now.
    SHARING_AWAY = "SF0133",
    /// Something else is in a place of what instances share.
    SHARED_FOREIGN = "SF0134",
    /// A definition that this instance does not have.
    DEFINITION_NOT_HERE = "SF0135",
    /// A route has as many dead letters as it may have.
    TOO_MANY_LETTERS = "SF0136",
    /// Somebody is trying a dead letter again just now.
    LETTER_BUSY = "SF0137",
    /// A message was sent or handled again, and failed again.
    NOT_DELIVERED = "SF0138",
    /// Nobody here can send or handle messages again.
    NO_REDELIVERY = "SF0139",
    /// A call or a tell has failed at the other side.
    MESSAGE_FAILED = "SF0140",
    /// Nobody answers there who takes messages.
    PEER_UNREACHABLE = "SF0141",
    /// The node of this process cannot be made.
    NODE_UNUSABLE = "SF0142",
    /// No instance of that id shares the store.
    INSTANCE_NOT_FOUND = "SF0143",
    /// Too much is waiting already.
    BUSY = "SF0201",
    /// The engine is stopping or has stopped.
    STOPPED = "SF0202",
    /// The store cannot write or read right now.
    STORE_UNAVAILABLE = "SF0301",
    /// Another process has the data folder.
    STORE_LOCKED = "SF0302",
    /// The file is not one of ours.
    STORE_FOREIGN = "SF0303",
    /// The file was written by a newer version.
    STORE_NEWER = "SF0304",
    /// The file is damaged.
    STORE_CORRUPT = "SF0305",
    /// Another instance has taken over the shard.
    STORE_FENCED = "SF0306",
    /// A journal says something that cannot be.
    JOURNAL_BROKEN = "SF0307",
    /// There is no room left for the store.
    STORE_FULL = "SF0308",
    /// The store may be read but not written.
    STORE_READ_ONLY = "SF0309",
    /// A definition has mistakes.
    DEFINITION_INVALID = "SF0401",
    /// A request that cannot be understood.
    BAD_REQUEST = "SF0501",
    /// The token is missing or wrong.
    UNAUTHORISED = "SF0502",
    /// A host or site that the server does not know.
    HOST_NOT_ALLOWED = "SF0503",
    /// Nothing is at that path.
    NO_SUCH_PATH = "SF0504",
    /// That method is not for that path.
    METHOD_NOT_ALLOWED = "SF0505",
    /// A body that is not JSON.
    MEDIA_TYPE = "SF0506",
    /// The server has as many requests as it takes at once.
    TOO_MANY_REQUESTS = "SF0507",
    /// The answer took too long.
    TIMED_OUT = "SF0508",
    /// A mistake of ours.
    INTERNAL = "SF0509",
    /// The server is not ready to work.
    NOT_READY = "SF0510",
    /// An address that others can reach needs a token.
    TOKEN_NEEDED = "SF0511",
    /// The token file cannot be used.
    TOKEN_UNUSABLE = "SF0512",
    /// The address cannot be listened on.
    CANNOT_LISTEN = "SF0513",
    /// The server has its store for itself.
    NOT_SHARED = "SF0514",
}
