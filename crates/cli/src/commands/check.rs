//! `steadfast check`: every mistake of definitions, with file, line and what was meant.

use crate::args::{Check, Common};
use crate::error::Error;

pub(crate) fn run(_common: &Common, _args: &Check) -> Result<(), Error> {
    Ok(())
}
