//! Problem documents (RFC 9457), as one clear sentence.

use crate::error::Error;
use reqwest::StatusCode;
use serde::Deserialize;

/// What the server says went wrong.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Problem {
    #[serde(skip)]
    status: u16,
    code: Option<String>,
    title: Option<String>,
    detail: Option<String>,
}

impl Problem {
    /// Reads a body; one that is no problem document is quoted.
    pub(crate) fn read(status: StatusCode, text: &str) -> Self {
        let problem = serde_json::from_str::<Problem>(text)
            .ok()
            .filter(|problem| problem.title.is_some() || problem.detail.is_some());
        let quoted = || Problem {
            detail: Some(text.trim().chars().take(200).collect()).filter(|text: &String| !text.is_empty()),
            ..Problem::default()
        };
        Problem { status: status.as_u16(), ..problem.unwrap_or_else(quoted) }
    }

    /// What the command ends with.
    pub(crate) fn into_error(self) -> Error {
        let said = self.detail.or(self.title).unwrap_or_else(|| "the server did not say why".into());
        let text = match &self.code {
            Some(code) => format!("{said} [{code}]\n  about this error: docs/errors/{code}.md"),
            None => format!("the server answered {}: {said}", self.status),
        };
        let text = match self.status {
            401 => format!("{text}\n  name the file with the token by --token-file, or the token itself by STEADFAST_TOKEN"),
            _ => text,
        };
        if self.status == 400 { Error::Usage(text) } else { Error::Failed(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::WRONG_USE;

    fn error(status: u16, text: &str) -> Error {
        Problem::read(StatusCode::from_u16(status).unwrap(), text).into_error()
    }

    #[test]
    fn a_problem_is_a_sentence_with_its_code_and_its_page() {
        let error = error(404, r#"{"status":404,"code":"SF0104","title":"There is no such run","detail":"there is no run \"x\""}"#);
        assert_eq!(error.to_string(), "there is no run \"x\" [SF0104]\n  about this error: docs/errors/SF0104.md");
        assert_eq!(error.exit_code(), 1);
    }

    #[test]
    fn bad_input_is_wrong_use_and_a_missing_token_is_explained() {
        assert_eq!(error(400, r#"{"title":"bad"}"#).exit_code(), WRONG_USE);
        assert!(error(401, r#"{"title":"who are you?"}"#).to_string().contains("STEADFAST_TOKEN"));
    }

    #[test]
    fn what_is_no_problem_document_is_quoted() {
        assert_eq!(error(502, "<html>bad gateway").to_string(), "the server answered 502: <html>bad gateway");
        assert_eq!(error(500, "").to_string(), "the server answered 500: the server did not say why");
    }
}
