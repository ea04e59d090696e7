//! Whom a plan is for: tenants by name, and those of a file.

use crate::error::Error;
use steadfast_kernel::TenantId;

/// The tenants that a file names, a line each. Blank lines and what follows a `#` are left out.
///
/// # Errors
/// If a line is no name of a tenant.
pub(super) fn listed(from: &str, text: &str) -> Result<Vec<String>, Error> {
    let mut tenants = Vec::new();
    for (at, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let name = line.split('#').next().unwrap_or_default().trim();
        if name.is_empty() {
            continue;
        }
        let wrong = |error| Error::Usage(format!("--tenants-file: line {} of {from}: {error}", at + 1));
        tenants.push(TenantId::new(name).map_err(wrong)?.to_string());
    }
    Ok(tenants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_and_comments_are_left_out() {
        let text = "\u{feff}# the first wave\nacme\n\n  blue  # they asked for it\r\n#cato\nteam/dodo";
        assert_eq!(listed("x", text).unwrap(), ["acme", "blue", "team/dodo"]);
    }

    #[test]
    fn a_line_that_is_no_tenant_is_named() {
        let error = listed("tenants.txt", "acme\nbig blue\n").unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("line 2 of tenants.txt"), "{error}");
    }
}
