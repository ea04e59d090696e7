//! Defines stable labels for the variants of an enum.

/// Defines `NAME::of`, the label of a value, and `NAME::ALL`, every label.
///
/// A new variant does not compile until it has a label; a label without a value fails
/// [`Page::assert_covers`](crate::bytes::Page::assert_covers).
#[macro_export]
macro_rules! labels {
    ($name:ident of $type:ty { $($pattern:pat => $label:literal),+ $(,)? }) => {
        struct $name;

        impl $name {
            const ALL: &[&str] = &[$($label),+];

            fn of(value: &$type) -> &'static str {
                match value { $($pattern => $label),+ }
            }
        }
    };
}
