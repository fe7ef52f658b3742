//! pgbouncer in front of a database's cluster, in transaction mode unless a test changes it; stopped with the test process.

use std::{
    fs,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Stdio},
};

use crate::{
    Database,
    cluster::{as_accepted_user, folder_for_postgres},
    mcp::{eventually, signal},
};

/// Stops the pooler as soon as the pipe to the test process closes.
const SUPERVISOR: &str = r#"PATH=$PATH:/usr/sbin
pgbouncer "$1/pgbouncer.ini" >> "$1/log" 2>&1 & pooler=$!
cat > /dev/null
kill -INT $pooler 2> /dev/null
wait $pooler
rm -rf "$1""#;

const PORT: u16 = 6432;

pub struct Pooler {
    folder: PathBuf,
    supervisor: Child,
}

impl Pooler {
    /// For one role of the test, with no more than `connections` to Postgres.
    pub fn start(database: &Database, kind: &str, connections: u32) -> Pooler {
        let folder = folder_for_postgres();
        let settings = format!(
            "[databases]\n* = host={cluster}\n[pgbouncer]\npool_mode = transaction\ndefault_pool_size = {connections}\n\
             unix_socket_dir = {folder}\nlisten_port = {PORT}\nauth_type = trust\nauth_file = {folder}/users\n\
             pidfile = {folder}/pid\n",
            cluster = database.socket().display(),
            folder = folder.display(),
        );
        fs::write(folder.join("pgbouncer.ini"), settings).expect("a file");
        fs::write(folder.join("users"), format!("\"{}\" \"\"\n", database.role(kind))).expect("a file");
        let supervisor = as_accepted_user(Path::new("sh"))
            .args(["-c", SUPERVISOR, "supervisor"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        let pooler = Pooler { folder, supervisor };
        let socket = pooler.folder.join(format!(".s.PGSQL.{PORT}"));
        eventually("pgbouncer listens", || UnixStream::connect(&socket).ok());
        pooler
    }

    /// Changes its mode (`transaction`, `session`), also for connections that are open.
    pub fn set_mode(&self, mode: &str) {
        let file = self.folder.join("pgbouncer.ini");
        let settings = fs::read_to_string(&file).expect("its settings");
        let settings = settings.lines().map(|line| match line.split_once(" = ") {
            Some(("pool_mode", _)) => format!("pool_mode = {mode}\n"),
            _ => format!("{line}\n"),
        });
        fs::write(&file, settings.collect::<String>()).expect("a file");
        let pid = fs::read_to_string(self.folder.join("pid")).expect("its process");
        signal(pid.trim().parse().expect("a process"), "HUP");
    }

    /// How a program connects through it as that role.
    pub fn url_of(&self, database: &Database, kind: &str) -> String {
        let (role, name) = (database.role(kind), &database.name);
        format!("host={} port={PORT} user={role} dbname={name}", self.folder.display())
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }
}
