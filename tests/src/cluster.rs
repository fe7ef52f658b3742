//! A private Postgres cluster in a temporary folder, removed when the test process ends, however it ends.

use std::{
    env,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, OnceLock},
    thread,
    time::{Duration, Instant},
};

use postgres::{Client, Config, NoTls};
use tempfile::TempDir;

/// Stops the server as soon as the pipe to the test process closes.
const SUPERVISOR: &str = r#""$1" -D "$2" >> "$2/server.log" 2>&1 & server=$!
cat > /dev/null
kill -INT $server 2> /dev/null
wait $server
rm -rf "$2""#;

const CONFIGURATION: &str = "
listen_addresses = ''
fsync = off
max_connections = 500
wal_level = logical
max_wal_senders = 10
max_replication_slots = 10
max_logical_replication_workers = 8
max_worker_processes = 16
log_min_messages = warning
";

pub struct Cluster {
    folder: PathBuf,
    /// The folder of its installation's programs.
    programs: PathBuf,
    /// Each removes the folder when this process ends, so the old ones are kept when the server is restarted.
    supervisors: Mutex<Vec<Child>>,
}

impl Cluster {
    /// The cluster that all tests of one process share.
    pub fn shared() -> &'static Cluster {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| {
            let cluster = Cluster::new();
            cluster.database_with_extension("pml_template");
            cluster
        })
    }

    /// A new, empty cluster.
    pub fn new() -> Cluster {
        Cluster::of(programs())
    }

    /// A new, empty cluster of the newest major version.
    pub fn of_newest_major() -> Cluster {
        let programs = env::var_os("PML_NEWER_TREE_BIN");
        Cluster::of(PathBuf::from(programs.expect(
            "PML_NEWER_TREE_BIN is set by scripts/test: the programs of the newest Postgres, with the extension",
        )))
    }

    fn of(programs: PathBuf) -> Cluster {
        let folder = folder_for_postgres();
        let initdb = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "-D"];
        run(as_accepted_user(&programs.join("initdb")).args(initdb).arg(&folder));
        Cluster::start(folder, programs, CONFIGURATION)
    }

    /// A streaming standby of this cluster.
    pub fn standby(&self) -> Cluster {
        let folder = folder_for_postgres();
        let backup = ["-U", "postgres", "-X", "stream", "-R", "--no-sync", "-c", "fast", "-D"];
        run(self.command("pg_basebackup").args(backup).arg(&folder).arg("-h").arg(&self.folder));
        // Copied with the data, but the primary's own.
        for file in [".s.PGSQL.5432.lock", "server.log"] {
            std::fs::remove_file(folder.join(file)).expect("a copy of the primary's file");
        }
        Cluster::start(folder, self.programs.clone(), "")
    }

    fn start(folder: PathBuf, programs: PathBuf, configuration: &str) -> Cluster {
        let socket = format!("{configuration}\nunix_socket_directories = '{}'\n", folder.display());
        append(&folder.join("postgresql.conf"), &socket);
        let cluster = Cluster { folder, programs, supervisors: Mutex::default() };
        cluster.start_again();
        cluster
    }

    /// Stops the server as a restart would: sessions end, committed data is kept.
    pub fn stop(&self) {
        run(self.command("pg_ctl").args(["stop", "-m", "fast", "-w", "-s", "-D"]).arg(&self.folder));
    }

    /// Stops the server as a crash would: unflushed data is lost.
    pub fn crash(&self) {
        run(self.command("pg_ctl").args(["stop", "-m", "immediate", "-w", "-s", "-D"]).arg(&self.folder));
    }

    /// Starts the server that was stopped.
    pub fn start_again(&self) {
        let mut command = as_accepted_user(Path::new("sh"));
        command.args(["-c", SUPERVISOR, "supervisor"]).arg(self.programs.join("postgres")).arg(&self.folder);
        // The extension must show none even then.
        command.env("RUST_BACKTRACE", "1");
        let supervisor = command.stdin(Stdio::piped()).spawn().expect("a shell");
        self.supervisors.lock().expect("no panic while locked").push(supervisor);
        self.wait_until_ready();
    }

    fn wait_until_ready(&self) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while let Err(error) = self.config("postgres", "postgres").connect(NoTls) {
            let log = || std::fs::read_to_string(self.folder.join("server.log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "the server doesn't start: {error}\n{}", log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn config(&self, user: &str, database: &str) -> Config {
        let mut config = Config::new();
        config.host_path(&self.folder).user(user).dbname(database);
        config
    }

    pub fn connect(&self, database: &str) -> Client {
        self.config("postgres", database).connect(NoTls).expect("a connection")
    }

    pub fn database_with_extension(&self, name: &str) -> Client {
        self.connect("postgres").batch_execute(&format!("CREATE DATABASE {name}")).expect("a database");
        let mut client = self.connect(name);
        client.batch_execute("CREATE EXTENSION pml").expect("the extension");
        client
    }

    /// Promotes a standby.
    pub fn promote(&self) {
        run(self.command("pg_ctl").args(["promote", "-w", "-s", "-D"]).arg(&self.folder));
    }

    /// Runs one of Postgres' programs on this cluster and returns its output.
    pub fn tool(&self, name: &str, arguments: &[&str]) -> Vec<u8> {
        output(self.tool_as("postgres", name).args(arguments))
    }

    /// One of Postgres' programs, to be run on this cluster as this role.
    pub fn tool_as(&self, role: &str, name: &str) -> Command {
        let mut command = self.command(name);
        command.arg("-h").arg(&self.folder).args(["-U", role]);
        command
    }

    /// Everything that the server has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("server.log")).expect("the server's log")
    }

    fn command(&self, name: &str) -> Command {
        as_accepted_user(&self.programs.join(name))
    }
}

impl Default for Cluster {
    fn default() -> Self {
        Cluster::new()
    }
}

/// The path of one of the private installation's programs.
pub fn program(name: &str) -> PathBuf {
    programs().join(name)
}

fn programs() -> PathBuf {
    PathBuf::from(env::var_os("PML_TREE_BIN").expect("PML_TREE_BIN is set by `make test`"))
}

/// Where the private installation keeps the scripts of extensions.
pub fn extension_folder() -> PathBuf {
    let output = output(Command::new(program("pg_config")).arg("--sharedir"));
    PathBuf::from(String::from_utf8_lossy(&output).trim()).join("extension")
}

/// A program of Postgres, run as a user that isn't root.
pub fn as_postgres(name: &str) -> Command {
    as_accepted_user(&program(name))
}

/// Root can't run Postgres; other users run it as themselves.
pub(crate) fn as_accepted_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program);
    command
}

fn is_root() -> bool {
    String::from_utf8_lossy(&output(Command::new("id").arg("-u"))).trim() == "0"
}

pub(crate) fn folder_for_postgres() -> PathBuf {
    let folder = TempDir::with_prefix("pml-test-").expect("a temporary folder").keep();
    run(Command::new("chmod").arg("700").arg(&folder));
    if is_root() {
        run(Command::new("chown").arg("postgres:").arg(&folder));
    }
    folder
}

fn append(path: &Path, text: &str) {
    let mut file = std::fs::OpenOptions::new().append(true).open(path).expect("the file");
    file.write_all(text.as_bytes()).expect("written");
}

fn run(command: &mut Command) {
    output(command);
}

fn output(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
