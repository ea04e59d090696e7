//! What people look for in a run: why it, or a step that is tried again, failed, and what it said last of how far it has come.

use std::collections::BTreeSet;

/// How long that text is at most, in bytes. A row is written anew at each change of its run, and a search reads the texts of many: what a thousand steps say is in
/// the journal. A failure alone is never longer.
pub const TEXT_MAX: usize = 4096;

/// What failures say, each once, as far as there is room for it beside the note.
pub(crate) fn of<'a>(failures: impl Iterator<Item = &'a str>, note: Option<&'a str>) -> Option<String> {
    let note = note.map(|note| cut(note.to_owned(), TEXT_MAX / 2));
    let room = TEXT_MAX - note.as_ref().map_or(0, |note| note.len() + 1);
    let (mut seen, mut text) = (BTreeSet::new(), String::new());
    for failure in failures {
        if seen.insert(failure) {
            add(&mut text, failure);
        }
        if text.len() > room {
            break;
        }
    }
    let mut text = cut(text, room);
    if let Some(note) = note.filter(|note| !seen.contains(note.as_str())) {
        add(&mut text, &note);
    }
    Some(text).filter(|text| !text.is_empty())
}

fn add(text: &mut String, line: &str) {
    if !text.is_empty() && !line.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// At the end of a character.
fn cut(mut text: String, max: usize) -> String {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max - '…'.len_utf8()));
        text.push('…');
    }
    text
}
