//! A private PostgreSQL.

use crate::certificates::Certificates;
use crate::server::{Process, free_port};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;

/// Debian has a folder per version.
const PROGRAMS: &str = "/usr/lib/postgresql";
const INSTALL: &str = "install it: apt-get install -y --no-install-recommends postgresql";
/// The environment variable with the port of a server that all processes of a test run share.
pub const SHARED_PORT: &str = "TEST_SERVERS_POSTGRES";
/// How often another port is tried, if somebody was faster.
const TRIES: usize = 5;
/// What ends it if we cannot: it is asked to end at once, and its folder goes with it.
const END: &str = "kill -QUIT \"$1\"; for i in 1 2 3 4 5 6 7 8 9; do kill -0 \"$1\" || break; sleep 0.2; done; rm -rf \"$2\"";

/// What a private PostgreSQL is like.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// What was committed is on the disk; without, it is quicker.
    pub fsync: bool,
    /// The password of the user `postgres`; everybody is let in without one.
    pub password: Option<String>,
    /// It speaks TLS, too, and refuses connections without.
    pub tls: bool,
    /// With TLS, it lets in only those whose certificate has the name of the user.
    pub asks_for_certificates: bool,
    /// Other settings of the server, by name.
    pub more: Vec<(String, String)>,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        PostgresOptions { fsync: true, password: None, tls: false, asks_for_certificates: false, more: Vec::new() }
    }
}

/// A private PostgreSQL on the loopback; it ends with this value.
#[derive(Debug)]
pub struct PostgresServer {
    options: PostgresOptions,
    programs: PathBuf,
    folder: TempDir,
    port: u16,
    certificates: Option<Certificates>,
    databases: AtomicU64,
    process: Option<Process>,
}

impl PostgresServer {
    /// The server that tests share: that of the whole run if [`SHARED_PORT`] names one, else one
    /// per process.
    ///
    /// # Panics
    /// If there is no PostgreSQL on this machine, or it does not begin.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(|| match std::env::var(SHARED_PORT) {
            Ok(port) => Self::running_at(port.parse().unwrap_or_else(|_| panic!("{SHARED_PORT} must be a port; got {port:?}"))),
            Err(_) => Self::start_to_share(),
        })
    }

    /// Starts a server for many tests at once. It does not write to the disk.
    ///
    /// # Panics
    /// If there is no PostgreSQL on this machine, or it does not begin.
    pub fn start_to_share() -> Self {
        let more = vec![("max_connections".into(), "400".into())];
        Self::start_with(PostgresOptions { fsync: false, more, ..PostgresOptions::default() })
    }

    /// A server that another process started as [`start_to_share`](Self::start_to_share) does, and
    /// will end.
    fn running_at(port: u16) -> Self {
        let (programs, folder) = (programs(), temporary_folder());
        let options = PostgresOptions { fsync: false, ..PostgresOptions::default() };
        PostgresServer { options, programs, folder, port, certificates: None, databases: AtomicU64::new(0), process: None }
    }

    /// Starts one that keeps what was committed, and lets everybody in.
    ///
    /// # Panics
    /// If there is no PostgreSQL on this machine, or it does not begin.
    pub fn start() -> Self {
        Self::start_with(PostgresOptions::default())
    }

    /// Starts one.
    ///
    /// # Panics
    /// If there is no PostgreSQL on this machine, or it does not begin.
    pub fn start_with(options: PostgresOptions) -> Self {
        let programs = programs();
        let folder = temporary_folder();
        let certificates = options.tls.then(|| Certificates::make(folder.path()));
        let databases = AtomicU64::new(0);
        let mut server = PostgresServer { options, programs, folder, port: 0, certificates, databases, process: None };
        server.give_away();
        server.make();
        let mut last = String::new();
        for _ in 0..TRIES {
            server.port = free_port();
            match server.run() {
                Ok(process) => {
                    server.process = Some(process);
                    return server;
                }
                Err(error) => last = error,
            }
        }
        panic!("{last}")
    }

    /// The folder and what is in it belong to the user that the server runs as.
    fn give_away(&self) {
        let Some((user, group)) = other_user() else { return };
        let files = fs::read_dir(self.folder.path()).into_iter().flatten().flatten().map(|file| file.path());
        for path in files.chain([self.folder.path().to_owned()]) {
            chown(&path, Some(user), Some(group)).unwrap_or_else(|error| panic!("{} cannot be given away: {error}", path.display()));
        }
        if let Some(certificates) = &self.certificates {
            let private = fs::Permissions::from_mode(0o600);
            fs::set_permissions(&certificates.key, private).unwrap_or_else(|error| panic!("the key cannot be hidden: {error}"));
        }
    }

    /// Makes the files of a server whose language is none, so that only what asks for it is
    /// compared by bytes.
    fn make(&self) {
        let mut initdb = self.command("initdb");
        initdb.args(["-U", "postgres", "--no-sync", "-E", "UTF8", "--locale-provider=icu", "--icu-locale=en", "--locale=C", "-D"]);
        initdb.arg(self.data());
        match &self.options.password {
            None => initdb.args(["-A", "trust"]),
            Some(password) => {
                let file = self.folder.path().join("password");
                fs::write(&file, password).unwrap_or_else(|error| panic!("no password can be set: {error}"));
                initdb.args(["-A", "scram-sha-256", "--pwfile"]).arg(file)
            }
        };
        let made = initdb.output().unwrap_or_else(|error| panic!("initdb cannot be started: {error}; {INSTALL}"));
        assert!(made.status.success(), "initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        fs::write(self.data().join("pg_hba.conf"), self.rules()).unwrap_or_else(|error| panic!("no rules can be set: {error}"));
    }

    /// How those of this machine are let in, at whichever address of the loopback they are.
    fn rules(&self) -> String {
        if self.options.tls {
            let how = if self.options.asks_for_certificates { "cert" } else { "trust" };
            return format!("hostnossl all all all reject\nhostssl all all all {how}\n");
        }
        let how = if self.options.password.is_some() { "scram-sha-256" } else { "trust" };
        format!("local all all {how}\nhost all all 127.0.0.0/8 {how}\n")
    }

    fn run(&self) -> Result<Process, String> {
        self.run_until("database system is ready to accept connections")
    }

    fn run_until(&self, ready: &str) -> Result<Process, String> {
        let on = |on: bool| if on { "on" } else { "off" }.to_owned();
        let mut settings = vec![
            ("listen_addresses".to_owned(), "127.0.0.1".to_owned()),
            ("port".to_owned(), self.port.to_string()),
            ("unix_socket_directories".to_owned(), self.folder.path().display().to_string()),
            ("fsync".to_owned(), on(self.options.fsync)),
            ("lc_messages".to_owned(), "C".to_owned()),
        ];
        if let Some(Certificates { ca, certificate, key, .. }) = &self.certificates {
            let files = [("ssl_ca_file", ca), ("ssl_cert_file", certificate), ("ssl_key_file", key)];
            settings.push(("ssl".to_owned(), "on".to_owned()));
            settings.extend(files.map(|(name, file)| (name.to_owned(), file.display().to_string())));
        }
        settings.extend(self.options.more.iter().cloned());
        // The log goes to the standard error, and is read from the standard output.
        let mut command = self.command_of(Path::new("/bin/sh"));
        command
            .args(["-c", "exec \"$0\" \"$@\" 2>&1"])
            .arg(self.programs.join("postgres"))
            .arg("-D")
            .arg(self.data());
        command.args(settings.iter().flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]));
        Process::start_guarded(&mut command, ready, END, self.folder.path())
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        self.command_of(&self.programs.join(program))
    }

    /// The server does not run as root.
    fn command_of(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if let Some((user, group)) = other_user() {
            command.uid(user).gid(group);
        }
        command.current_dir(self.folder.path());
        command
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The certificate to trust, and others.
    ///
    /// # Panics
    /// If it does not speak TLS.
    pub fn certificates(&self) -> &Certificates {
        self.certificates.as_ref().unwrap_or_else(|| panic!("this server was started without TLS"))
    }

    /// Makes an empty database, and gives its name.
    pub fn database(&self) -> String {
        // Processes that share the server have different ids.
        let name = format!("test_{}_{}", std::process::id(), self.databases.fetch_add(1, Ordering::SeqCst));
        self.psql("postgres", &format!("CREATE DATABASE {name} TEMPLATE template0"));
        name
    }

    /// Where a database is, without a password.
    pub fn url(&self, database: &str) -> String {
        url(self.port, database)
    }

    /// What `psql` says to some SQL: a line per row, columns separated by `|`.
    ///
    /// # Panics
    /// If it fails.
    pub fn psql(&self, database: &str, sql: &str) -> String {
        self.try_psql(database, sql).unwrap_or_else(|error| panic!("psql failed: {error}"))
    }

    /// The same, or what went wrong.
    ///
    /// # Errors
    /// If the server cannot be reached, or refuses the SQL.
    pub fn try_psql(&self, database: &str, sql: &str) -> Result<String, String> {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.env("PGPASSWORD", self.options.password.as_deref().unwrap_or_default())
            .env("PGCONNECT_TIMEOUT", "10");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &self.url(database), "-c", sql]);
        let output = psql.output().map_err(|error| format!("psql cannot be started: {error}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// It does nothing any more until [`go_on`](Self::go_on); its connections stay.
    ///
    /// # Panics
    /// If it does not run.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// It goes on.
    ///
    /// # Panics
    /// If it does not run.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// A process serves each connection; the first one goes first, so that it starts no more.
    fn signal(&self, signal: Signal) {
        let running = self.process.as_ref().unwrap_or_else(|| panic!("this server does not run"));
        running.signal(signal);
        let id = running.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|id| id.parse().ok()).filter_map(Pid::from_raw) {
            let _it_has_ended = kill_process(child, signal);
        }
    }

    /// Ends it at once, as a crash would.
    pub fn kill(&mut self) {
        self.end(Signal::QUIT);
    }

    /// Ends it in order: connections are closed, and what is under way is not finished.
    pub fn stop(&mut self) {
        self.end(Signal::INT);
    }

    fn end(&mut self, how: Signal) {
        if self.process.is_some() {
            self.go_on();
        }
        if let Some(process) = self.process.take() {
            process.end(how);
        }
    }

    /// Starts it again on the same port.
    ///
    /// # Panics
    /// If it does not begin.
    pub fn restart(&mut self) {
        self.stop();
        self.process = Some(self.run().unwrap_or_else(|error| panic!("{error}")));
    }
}

impl PostgresServer {
    /// Starts it again as a standby that follows nobody; `pg_promote()` makes it what it was.
    ///
    /// # Panics
    /// If it does not begin.
    pub fn demote(&mut self) {
        self.stop();
        fs::write(self.data().join("standby.signal"), "").unwrap_or_else(|error| panic!("it cannot be made a standby: {error}"));
        if let Some((user, group)) = other_user() {
            chown(self.data().join("standby.signal"), Some(user), Some(group)).unwrap_or_else(|error| panic!("nor given away: {error}"));
        }
        let standby = self.run_until("database system is ready to accept read-only connections");
        self.process = Some(standby.unwrap_or_else(|error| panic!("{error}")));
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn temporary_folder() -> TempDir {
    TempDir::new().unwrap_or_else(|error| panic!("a temporary folder cannot be made: {error}"))
}

/// Where a database is, behind that port of the loopback.
fn url(port: u16, database: &str) -> String {
    format!("postgresql://postgres@127.0.0.1:{port}/{database}")
}

/// The folder with the newest version.
fn programs() -> PathBuf {
    let versions = fs::read_dir(PROGRAMS).into_iter().flatten().flatten().map(|folder| folder.path().join("bin"));
    let number = |path: &PathBuf| path.parent()?.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.filter(|bin| bin.join("postgres").exists()).max_by_key(number);
    newest.unwrap_or_else(|| panic!("there is no PostgreSQL below {PROGRAMS}; {INSTALL}"))
}

/// The user and group that the server runs as, if it cannot be ours because we are root.
fn other_user() -> Option<(u32, u32)> {
    if !geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let line = users.lines().find(|line| line.starts_with("postgres:"));
    let mut numbers = line?.split(':').skip(2).map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}
