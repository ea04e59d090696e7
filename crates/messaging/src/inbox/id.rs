//! The id of a request, kept where its entry is: one place in memory less to look at.

/// The longest id that needs no memory of its own: room for a UUID as text.
const SHORT_MAX: usize = 38;

pub(super) enum Id {
    Short(u8, [u8; SHORT_MAX]),
    Long(Box<str>),
}

impl Id {
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Id::Short(length, bytes) => &bytes[..usize::from(*length)],
            Id::Long(text) => text.as_bytes(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.as_bytes().len()
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Self {
        if text.len() > SHORT_MAX {
            return Id::Long(text.into());
        }
        let mut bytes = [0; SHORT_MAX];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Id::Short(text.len() as u8, bytes)
    }
}

impl Default for Id {
    fn default() -> Self {
        Id::Short(0, [0; SHORT_MAX])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_any_length_comes_out_as_it_went_in() {
        for length in 0..100 {
            let text: String = "aé".chars().cycle().take(length).collect();
            assert_eq!(Id::from(&*text).as_bytes(), text.as_bytes());
        }
        assert_eq!(size_of::<Id>(), 40);
    }
}
