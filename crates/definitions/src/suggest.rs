//! What was probably meant by a name that is not known.

/// Names that are less alike than this are not worth a guess.
const LIKENESS_MIN: f64 = 0.7;

/// The most names that are listed where no guess is good.
const LISTED_MAX: usize = 12;

/// The known name that is most like the one that was written, if one is.
pub(crate) fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_ascii_lowercase();
    let alike = |name: &str| strsim::jaro_winkler(&written, &name.to_ascii_lowercase());
    let rated = known.into_iter().map(|name| (alike(name), name)).filter(|(likeness, _)| *likeness >= LIKENESS_MIN);
    rated.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// `did you mean X?`, or else what there is.
pub(crate) fn help<'a>(written: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> Option<String> {
    if let Some(name) = nearest(written, known.clone()) {
        return Some(format!("did you mean `{name}`?"));
    }
    let names: Vec<&str> = known.into_iter().collect();
    match names.len() {
        0 => None,
        1..=LISTED_MAX => Some(format!("there is: {}", names.join(", "))),
        more => Some(format!("there is: {} and {} more", names[..LISTED_MAX].join(", "), more - LISTED_MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_what_was_meant() {
        for (written, meant) in [("retries", "retry"), ("tiemout", "timeout"), ("After", "after"), ("max_attempt", "max_attempts")] {
            assert_eq!(nearest(written, ["retry", "timeout", "after", "max_attempts"]), Some(meant), "{written}");
        }
        assert_eq!(nearest("xyz", ["retry", "timeout"]), None);
    }

    #[test]
    fn where_no_guess_is_good_the_names_are_listed() {
        assert_eq!(help("xyz", ["retry", "undo"]).as_deref(), Some("there is: retry, undo"));
        assert_eq!(help("xyz", []), None);
    }
}
