//! What an error of Redis means for the caller: come back later, or have somebody mend it. No text of the server is passed on, as it may
//! quote what was sent.

use redis::{ErrorKind, RedisError, ServerError};
use steadfast_store::CommonsError;

/// The rights that a user needs, for those who have to give them.
pub(crate) const RIGHTS: &str = "it needs ~PREFIX* and the commands of the ACL line in the manual";

pub(crate) fn away(why: impl Into<String>) -> CommonsError {
    CommonsError::Away { why: why.into() }
}

pub(crate) fn refused(why: impl Into<String>) -> CommonsError {
    CommonsError::Refused { why: why.into() }
}

/// What an error of the connection means; `place` says which server.
pub(crate) fn of_connection(error: &RedisError, place: &str) -> CommonsError {
    if error.is_timeout() {
        return away(format!("Redis at {place} does not answer in time"));
    }
    match error.kind() {
        ErrorKind::AuthenticationFailed => {
            refused(format!("Redis at {place} does not accept user and password; check them in the settings"))
        }
        ErrorKind::Io => of_io(&error.to_string(), place),
        ErrorKind::Server(_) | ErrorKind::Extension => of_code(error.code().unwrap_or("ERR"), error.detail().unwrap_or(""), place),
        ErrorKind::InvalidClientConfig => {
            refused(format!("the settings do not fit Redis at {place}: {}; check the URL and the CA file", error.category()))
        }
        ErrorKind::Parse => away(format!("what answers at {place} does not speak the protocol of Redis; check host, port and TLS")),
        _ => refused(format!("Redis at {place} refused the connection; check user, password and the number of the database")),
    }
}

fn of_io(text: &str, place: &str) -> CommonsError {
    if text.contains("certificate") {
        return refused(format!("Redis at {place} shows a certificate that is not trusted ({text}); check the CA file and the host name"));
    }
    away(format!("Redis at {place} cannot be reached: {text}"))
}

/// What an answer that is an error means.
pub(crate) fn of_answer(error: &ServerError, place: &str) -> CommonsError {
    let detail = error.details().unwrap_or("");
    of_code(code(error.code(), detail), detail, place)
}

/// The code of an error; servers of version 6 hide it in a text if it comes up in a script, and rights that are missing in a script have none.
fn code<'a>(code: &'a str, detail: &str) -> &'a str {
    let hidden = ["READONLY", "MASTERDOWN", "MISCONF", "NOREPLICAS", "OOM"];
    match code {
        "ERR" if detail.starts_with("Error running script") => hidden.into_iter().find(|code| detail.contains(code)).unwrap_or(code),
        "ERR" if detail.starts_with("The user executing the script") => "NOPERM",
        code => code,
    }
}

fn of_code(code: &str, detail: &str, place: &str) -> CommonsError {
    match code {
        "READONLY" => away(format!("Redis at {place} is a replica now and takes no writes")),
        "LOADING" => away(format!("Redis at {place} is still loading its data")),
        "BUSY" => away(format!("Redis at {place} is busy with a script of somebody")),
        "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "NOREPLICAS" => away(format!("Redis at {place} takes no commands now ({code})")),
        "NOAUTH" => refused(format!("Redis at {place} wants a password; give one in the URL or in a file")),
        "WRONGPASS" => refused(format!("Redis at {place} does not accept user and password; check them in the settings")),
        "NOPERM" => refused(format!("Redis at {place} does not let this user do what is needed; {RIGHTS}")),
        "OOM" => refused(format!("Redis at {place} has no memory left; raise maxmemory or let it evict other keys")),
        "MISCONF" => refused(format!("Redis at {place} cannot save to its disk and takes no writes; look into its log")),
        "DENIED" => refused(format!("Redis at {place} is in protected mode; give it a password or an address to listen on")),
        "MOVED" | "ASK" | "CROSSSLOT" => cluster(place),
        "ERR" if detail.starts_with("Authentication required") => of_code("NOAUTH", "", place),
        "ERR" if detail.starts_with("DB index") => refused(format!("Redis at {place} has no database of that number; check the URL")),
        "ERR" if detail.starts_with("max number of clients") => away(format!("Redis at {place} has too many clients")),
        "ERR" if detail.starts_with("unknown command") => {
            refused(format!("Redis at {place} does not know a command that is needed; use version {OLDEST} or later"))
        }
        _ => refused(format!("Redis at {place} answered with the error {code}; look into its log")),
    }
}

/// The oldest version that has all commands.
pub(crate) const OLDEST: &str = "6.2";

pub(crate) fn cluster(place: &str) -> CommonsError {
    refused(format!("Redis at {place} is part of a cluster, which is not supported; use one server, or one with replicas and Sentinel"))
}

/// True if the connection is of no use any more after this answer: another server, or another login, is needed.
pub(crate) fn ends_connection(error: &ServerError) -> bool {
    matches!(code(error.code(), error.details().unwrap_or("")), "READONLY" | "MASTERDOWN" | "NOAUTH" | "WRONGPASS")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_of_the_server_says_whether_to_come_back() {
        for code in ["READONLY", "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN"] {
            assert!(matches!(of_code(code, "", "h:1"), CommonsError::Away { .. }), "{code}");
        }
        for code in ["NOAUTH", "WRONGPASS", "NOPERM", "OOM", "MISCONF", "DENIED", "MOVED", "ERR"] {
            assert!(matches!(of_code(code, "", "h:1"), CommonsError::Refused { .. }), "{code}");
        }
        assert!(matches!(of_code("ERR", "max number of clients reached", "h:1"), CommonsError::Away { .. }));
    }

    #[test]
    fn what_comes_up_in_a_script_is_found_in_its_text() {
        let text = "Error running script (call to f_0): @user_script:12: -READONLY You can't write against a read only replica.";
        assert_eq!(code("ERR", text), "READONLY");
        assert_eq!(code("ERR", "Error running script (call to f_0): @user_script:1: attempt to index a nil value"), "ERR");
        assert_eq!(code("ERR", "READONLY is not a code here"), "ERR");
        assert_eq!(code("OOM", "command not allowed"), "OOM");
    }

    #[test]
    fn what_the_server_quotes_is_not_passed_on() {
        let error = of_code("ERR", "unknown command 'EVALSHA', with args beginning with: 's3cret'", "h:1").to_string();
        assert!(error.contains("6.2") && !error.contains("s3cret"), "{error}");
    }
}
