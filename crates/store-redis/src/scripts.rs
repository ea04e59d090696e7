//! The scripts: each compares and changes one key in one step.

use std::sync::LazyLock;

/// A script that the server knows by the hash of its text.
pub(crate) struct Lua {
    pub(crate) text: &'static str,
    pub(crate) hash: LazyLock<String>,
}

macro_rules! lua {
    ($($name:ident $file:literal)*) => {
        $(pub(crate) static $name: Lua = {
            const TEXT: &str = concat!(include_str!("lua/common.lua"), include_str!(concat!("lua/", $file, ".lua")));
            Lua { text: TEXT, hash: LazyLock::new(|| redis::Script::new(TEXT).get_hash().to_owned()) }
        };)*

        /// All of them, to be loaded.
        pub(crate) static ALL: &[&Lua] = &[$(&$name),*];
    };
}

lua! {
    LEAVE "leave"
    PLAN "plan"
    TASK "task"
    ADOPT "adopt"
    INDEX "index"
    CHECKPOINT "checkpoint"
    DROP_CHECKPOINT "drop_checkpoint"
    NEXT_FENCE "next_fence"
    RAISE_FENCE "raise_fence"
    TAKE_LOCK "take_lock"
    RENEW_LOCK "renew_lock"
    RELEASE_LOCK "release_lock"
}

#[cfg(test)]
mod snapshot;
