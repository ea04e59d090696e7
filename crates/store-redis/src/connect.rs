//! One connect: ask Sentinel where the server is, log in, see what it is, and load the scripts.

use crate::address::{Address, Host};
use crate::fault::{self, away, refused};
use crate::scripts;
use crate::settings::Settings;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ConnectionInfo, IntoConnectionInfo, Pipeline, RedisConnectionInfo, TlsCertificates, Value};
use std::path::Path;
use steadfast_store::CommonsError;

/// A connection that is ready, and the server at its other end.
#[derive(Clone)]
pub(crate) struct Connected {
    pub(crate) connection: MultiplexedConnection,
    pub(crate) place: String,
}

/// Connects once.
pub(crate) async fn connect(settings: &Settings, address: &Address) -> Result<Connected, CommonsError> {
    let host = match (&address.service, address.hosts.first()) {
        (Some(service), _) => ask_sentinels(settings, address, service).await?,
        (None, Some(host)) => host.clone(),
        (None, None) => return Err(refused("the URL names no server")),
    };
    let login = match password(settings)? {
        Some(password) => address.login.clone().set_password(password),
        None => address.login.clone(),
    };
    let place = host.to_string();
    let mut connection = dial(settings, address, &host, login).await?;
    prepare(&mut connection, &place).await?;
    Ok(Connected { connection, place })
}

/// The password that is not in the URL; it is read each time, as it may have changed.
fn password(settings: &Settings) -> Result<Option<String>, CommonsError> {
    match (&settings.password, &settings.password_file) {
        (Some(password), _) => Ok(Some(password.reveal().to_owned())),
        (None, Some(file)) => read_secret(file).map(Some),
        (None, None) => Ok(None),
    }
}

/// The first line of a file.
fn read_secret(file: &Path) -> Result<String, CommonsError> {
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
    let line = text.lines().next().unwrap_or_default();
    if line.is_empty() { Err(refused(format!("{} should hold a password and is empty", file.display()))) } else { Ok(line.to_owned()) }
}

fn unreadable(file: &Path, error: &std::io::Error) -> CommonsError {
    refused(format!("{} cannot be read ({}); check that it is there and may be read", file.display(), error.kind()))
}

/// Opens a connection and logs in.
async fn dial(
    settings: &Settings,
    address: &Address,
    host: &Host,
    login: RedisConnectionInfo,
) -> Result<MultiplexedConnection, CommonsError> {
    let place = host.to_string();
    let failed = |error| fault::of_connection(&error, &place);
    let info = address.reach(host).into_connection_info().map_err(failed)?.set_redis_settings(login);
    let client = client(settings, address, info)?.map_err(failed)?;
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(settings.connect_timeout))
        .set_response_timeout(Some(settings.response_timeout));
    client.get_multiplexed_async_connection_with_config(&config).await.map_err(failed)
}

fn client(settings: &Settings, address: &Address, info: ConnectionInfo) -> Result<redis::RedisResult<Client>, CommonsError> {
    if !address.tls {
        return Ok(Client::open(info));
    }
    let root_cert = match &settings.ca_file {
        Some(file) => Some(std::fs::read(file).map_err(|error| unreadable(file, &error))?),
        None => None,
    };
    Ok(Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert }))
}

/// The server that the first Sentinel to answer holds for the one that takes writes.
async fn ask_sentinels(settings: &Settings, address: &Address, service: &str) -> Result<Host, CommonsError> {
    let login = RedisConnectionInfo::default().set_skip_set_lib_name();
    let login = match &settings.sentinel_password_file {
        Some(file) => login.set_password(read_secret(file)?),
        None => login,
    };
    let mut last = refused("the URL names no Sentinel");
    for sentinel in &address.hosts {
        match ask_sentinel(settings, address, sentinel, login.clone(), service).await {
            Ok(host) => return Ok(host),
            Err(error) => last = worse(last, error),
        }
    }
    Err(last)
}

/// What is to be said of several: one that may answer later is a reason to come back.
fn worse(last: CommonsError, next: CommonsError) -> CommonsError {
    if matches!(last, CommonsError::Away { .. }) { last } else { next }
}

async fn ask_sentinel(
    settings: &Settings,
    address: &Address,
    sentinel: &Host,
    login: RedisConnectionInfo,
    service: &str,
) -> Result<Host, CommonsError> {
    let place = format!("{sentinel} (Sentinel)");
    let mut connection = dial(settings, address, sentinel, login).await?;
    let mut ask = Pipeline::new();
    ask.cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(service);
    let answer = connection
        .send_packed_commands(&ask, 0, 1)
        .await
        .map_err(|error| fault::of_connection(&error, &place))?;
    match answer.first() {
        Some(Value::ServerError(error)) => Err(fault::of_answer(error, &place)),
        Some(Value::Array(parts)) => host(parts).ok_or_else(|| away(format!("Redis at {place} gave no address of a server"))),
        _ => Err(refused(format!("Redis at {place} does not know a service {service:?}; check the name in the URL"))),
    }
}

fn host(parts: &[Value]) -> Option<Host> {
    let (Value::BulkString(name), Value::BulkString(port)) = (parts.first()?, parts.get(1)?) else { return None };
    Some(Host { name: String::from_utf8(name.clone()).ok()?, port: std::str::from_utf8(port).ok()?.parse().ok()? })
}

/// Sees what the server is, and loads the scripts, in one round trip.
async fn prepare(connection: &mut MultiplexedConnection, place: &str) -> Result<(), CommonsError> {
    let mut pipeline = load();
    pipeline.cmd("HELLO");
    let answers = connection.send_packed_commands(&pipeline, 0, pipeline.len()).await;
    let mut answers = answers.map_err(|error| fault::of_connection(&error, place))?;
    let hello = answers.pop().unwrap_or(Value::Nil);
    if let Value::ServerError(error) = &hello {
        return Err(fault::of_answer(error, place));
    }
    check_server(&hello, place)?;
    loaded(&answers, place)
}

/// All scripts, to be loaded.
pub(crate) fn load() -> Pipeline {
    let mut pipeline = Pipeline::with_capacity(scripts::ALL.len() + 1);
    for script in scripts::ALL {
        pipeline.cmd("SCRIPT").arg("LOAD").arg(script.text);
    }
    pipeline
}

/// Whether all scripts are there now.
pub(crate) fn loaded(answers: &[Value], place: &str) -> Result<(), CommonsError> {
    for answer in answers {
        if let Value::ServerError(error) = answer {
            return Err(fault::of_answer(error, place));
        }
    }
    Ok(())
}

fn check_server(hello: &Value, place: &str) -> Result<(), CommonsError> {
    match field(hello, "mode") {
        Some("cluster") => return Err(fault::cluster(place)),
        Some("sentinel") => {
            return Err(refused(format!("what answers at {place} is Sentinel; use redis+sentinel://{place}/service/db")));
        }
        _ => {}
    }
    if let Some(version) = field(hello, "version").filter(|version| is_old(version)) {
        return Err(refused(format!("Redis at {place} has version {version}; {} is the oldest that will do", fault::OLDEST)));
    }
    match field(hello, "role") {
        Some("master") | None => Ok(()),
        Some(_) => Err(away(format!("Redis at {place} is a replica and takes no writes; name the server that does, or ask Sentinel"))),
    }
}

/// A field of a flat list of names and values.
fn field<'a>(list: &'a Value, name: &str) -> Option<&'a str> {
    let Value::Array(parts) = list else { return None };
    let text = |value: &'a Value| match value {
        Value::BulkString(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    };
    parts.chunks_exact(2).find(|pair| text(&pair[0]) == Some(name)).and_then(|pair| text(&pair[1]))
}

fn is_old(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) < (6, 2),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(mode: &str, version: &str, role: &str) -> Value {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        Value::Array(["mode", mode, "version", version, "role", role].into_iter().map(text).collect())
    }

    #[test]
    fn a_server_that_is_not_what_we_need_is_named() {
        let check = |mode, version, role| check_server(&hello(mode, version, role), "h:1").map_err(|error| error.to_string());
        assert_eq!(check("standalone", "6.2.0", "master"), Ok(()));
        assert!(check("standalone", "6.0.9", "master").unwrap_err().contains("6.2 is the oldest"));
        assert!(check("cluster", "7.0.0", "master").unwrap_err().contains("cluster"));
        assert!(check("sentinel", "7.0.0", "").unwrap_err().contains("redis+sentinel://h:1/"));
        assert!(check("standalone", "10.1.0", "replica").unwrap_err().contains("replica"));
    }

    #[test]
    fn one_sentinel_that_may_answer_later_is_a_reason_to_come_back() {
        assert_eq!(worse(refused("a"), away("b")), away("b"));
        assert_eq!(worse(away("a"), refused("b")), away("a"));
    }
}
