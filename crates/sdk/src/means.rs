//! What the process gives to all of its workflows.

/// What the process gives to all of its workflows. There when the engine has started, and so before any code runs.
#[derive(Clone, Default)]
pub(crate) struct Means {
    /// How others are called.
    #[cfg(feature = "messages")]
    pub(crate) node: std::sync::Arc<std::sync::OnceLock<steadfast_messaging::Node>>,
}
