//! Checks the sources for defects that the compiler does not see.

mod subjects;
