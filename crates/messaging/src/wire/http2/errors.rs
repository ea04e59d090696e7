//! What goes wrong on a connection, as failures: what may pass is transient, what somebody has to mend is permanent.

use std::error::Error;
use std::io;
use steadfast_kernel::{Class, Code, Failure};
use tonic::Status;

/// Why a connection could not be made or was lost.
pub(super) fn io_failure(address: &str, error: &io::Error) -> Failure {
    let message = format!("cannot connect to {address}: {error}");
    match error.kind() {
        io::ErrorKind::PermissionDenied => Failure::new(Code::PermissionDenied, message),
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported => Failure::new(Code::InvalidArgument, message),
        io::ErrorKind::TimedOut => Failure::new(Code::DeadlineExceeded, message),
        _ => Failure::transient(message),
    }
}

/// What the other end of a stream has said, or what became of the connection below it.
pub(super) fn failure(status: &Status) -> Failure {
    use tonic::Code as Theirs;
    let (code, class) = match status.code() {
        // A length over the limit, seen by the reader. A quota is `RESOURCE_EXHAUSTED` without the class, and passes.
        Theirs::OutOfRange => (Code::ResourceExhausted, Class::Permanent),
        Theirs::ResourceExhausted => (Code::ResourceExhausted, Class::Transient),
        Theirs::Unauthenticated | Theirs::PermissionDenied => (Code::PermissionDenied, Class::Permanent),
        Theirs::InvalidArgument => (Code::InvalidArgument, Class::Permanent),
        Theirs::Unimplemented | Theirs::FailedPrecondition => (Code::FailedPrecondition, Class::Permanent),
        Theirs::NotFound => (Code::NotFound, Class::Permanent),
        Theirs::DeadlineExceeded => (Code::DeadlineExceeded, Class::Transient),
        _ => (Code::Unavailable, Class::Transient),
    };
    let failure = Failure::new(code, format!("the link has ended: {}", status.message())).class(class);
    causes(failure, status)
}

/// The same the other way round, for the other end.
pub(super) fn status(failure: &Failure) -> Status {
    use tonic::Code as Theirs;
    let code = match failure.code {
        Code::ResourceExhausted if failure.class == Class::Permanent => Theirs::OutOfRange,
        Code::ResourceExhausted => Theirs::ResourceExhausted,
        Code::PermissionDenied => Theirs::PermissionDenied,
        Code::InvalidArgument => Theirs::InvalidArgument,
        Code::FailedPrecondition => Theirs::FailedPrecondition,
        Code::NotFound => Theirs::NotFound,
        Code::DeadlineExceeded => Theirs::DeadlineExceeded,
        _ if failure.class == Class::Transient => Theirs::Unavailable,
        _ => Theirs::FailedPrecondition,
    };
    Status::new(code, failure.message.clone())
}

/// Adds what lies behind an error, nearest first.
pub(super) fn causes(mut failure: Failure, error: &dyn Error) -> Failure {
    let mut source = error.source();
    while let Some(error) = source {
        failure = failure.cause(error);
        source = error.source();
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_sockets_are_classified() {
        let class = |kind: io::ErrorKind| io_failure("x", &kind.into()).class;
        for kind in
            [io::ErrorKind::ConnectionRefused, io::ErrorKind::ConnectionReset, io::ErrorKind::TimedOut, io::ErrorKind::HostUnreachable]
        {
            assert_eq!(class(kind), Class::Transient, "{kind}");
        }
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::InvalidInput] {
            assert_eq!(class(kind), Class::Permanent, "{kind}");
        }
    }

    #[test]
    fn failures_keep_class_and_code_on_their_way() {
        for code in [
            Code::ResourceExhausted,
            Code::PermissionDenied,
            Code::InvalidArgument,
            Code::NotFound,
            Code::DeadlineExceeded,
            Code::Unavailable,
        ] {
            for class in [code.class(), if code == Code::ResourceExhausted { Class::Permanent } else { code.class() }] {
                let back = failure(&status(&Failure::new(code, "so").class(class)));
                assert_eq!((back.code, back.class), (code, class));
            }
        }
    }
}
