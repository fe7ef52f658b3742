//! A relay in front of a cluster's socket that can stop forwarding, as a network does that drops packets: the connections
//! stay open, and nobody is told.

use std::{
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use tempfile::TempDir;

use crate::Database;

const SOCKET: &str = ".s.PGSQL.5432";

pub struct Relay {
    folder: TempDir,
    drops: Arc<AtomicBool>,
}

impl Relay {
    pub fn start(database: &Database) -> Relay {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = UnixListener::bind(folder.path().join(SOCKET)).expect("a socket");
        let drops: Arc<AtomicBool> = Arc::default();
        let (target, dropping) = (database.socket().join(SOCKET), drops.clone());
        // It ends with the test process.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                connect(client, &target, &dropping);
            }
        });
        Relay { folder, drops }
    }

    /// How a program connects through it as that role.
    pub fn url_of(&self, database: &Database, kind: &str) -> String {
        let (role, name) = (database.role(kind), &database.name);
        format!("host={} user={role} dbname={name}", self.folder.path().display())
    }

    /// From now on, or no longer, everything on its connections is lost. What was lost doesn't come back.
    pub fn drop_everything(&self, drops: bool) {
        self.drops.store(drops, Ordering::SeqCst);
    }
}

fn connect(client: UnixStream, target: &PathBuf, drops: &Arc<AtomicBool>) {
    let Ok(server) = UnixStream::connect(target) else { return };
    let (from_client, from_server) =
        (client.try_clone().expect("a copy"), server.try_clone().expect("a copy"));
    for (mut from, mut to) in [(from_client, server), (from_server, client)] {
        let drops = drops.clone();
        thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(read @ 1..) = from.read(&mut buffer) {
                if !drops.load(Ordering::SeqCst) && to.write_all(&buffer[..read]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(std::net::Shutdown::Both);
        });
    }
}
