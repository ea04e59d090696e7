//! Workflows in YAML: parse, check, and carry out their steps.
