//! A YAML document as a tree that knows where everything stands, and how its fields are read.

mod fields;
mod node;

pub(crate) use fields::Fields;
pub(crate) use node::{At, Key, Node, Value, parse};
