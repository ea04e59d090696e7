//! What stands in the brackets: `#[workflow(name = "…")]`.

use proc_macro2::TokenStream;
use syn::parse::{ParseStream, Parser};
use syn::{Error, Ident, Lit, LitStr, Token};

const FORM: &str = "write `#[workflow(name = \"…\")]`, or `#[workflow]` alone";

/// The settings that there are.
const KNOWN: [&str; 1] = ["name"];

/// The name under which the workflow is registered, if it is given.
pub(crate) fn registered_name(arguments: TokenStream) -> Result<Option<LitStr>, Error> {
    settings.parse2(arguments)
}

fn settings(input: ParseStream) -> Result<Option<LitStr>, Error> {
    let mut name: Option<LitStr> = None;
    while !input.is_empty() {
        let setting: Ident = input.parse().map_err(|error| Error::new(error.span(), format!("a setting has a name: {FORM}")))?;
        if setting != "name" {
            return Err(unknown(&setting));
        }
        if name.is_some() {
            return Err(Error::new(setting.span(), "the name is given twice"));
        }
        let value = input
            .parse::<Token![=]>()
            .and_then(|_| input.parse::<Lit>())
            .map_err(|_| Error::new(setting.span(), format!("the name has no value: {FORM}")))?;
        let Lit::Str(value) = value else { return Err(Error::new(value.span(), format!("the name is not a string: {FORM}"))) };
        check_name(&value)?;
        name = Some(value);
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
    }
    Ok(name)
}

fn unknown(setting: &Ident) -> Error {
    let said = setting.to_string();
    let message = match KNOWN.iter().find(|known| distance(known, &said) <= 2) {
        Some(known) => format!("unknown setting `{said}`; did you mean `{known}`?"),
        None => format!("unknown setting `{said}`; there is only `name`. Policies and timeouts belong to steps, limits to `register_with`"),
    };
    Error::new(setting.span(), message)
}

/// How many letters have to be put in, taken out or replaced to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (i, a) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.chars().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[other.chars().count()]
}

/// The rule for names of workflows, so that a bad one does not have to wait for the program to start.
fn check_name(name: &LitStr) -> Result<(), Error> {
    let value = name.value();
    let fits = (1..=128).contains(&value.len())
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/".contains(&b))
        && value.split('/').all(|part| !part.bytes().all(|b| b == b'.'));
    if fits { Ok(()) } else { Err(Error::new(name.span(), "a workflow name has 1 to 128 characters of A-Z a-z 0-9 . _ - /")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted() {
        assert_eq!((distance("name", "name"), distance("name", "nmae"), distance("name", "Name")), (0, 2, 1));
        assert_eq!((distance("name", "nam"), distance("name", "retries"), distance("", "abc")), (1, 6, 3));
    }
}
