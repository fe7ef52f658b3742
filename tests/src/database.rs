//! A database and roles for one test.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use fallible_iterator::FallibleIterator;
use postgres::{
    Client, NoTls,
    error::{DbError, Error},
    types::ToSql,
};

use crate::Cluster;

pub struct Database {
    pub name: String,
    cluster: &'static Cluster,
}

/// The server's notices and warnings, in order.
#[derive(Clone, Default)]
pub struct Notices(Arc<Mutex<Vec<DbError>>>);

impl Notices {
    pub fn take(&self) -> Vec<DbError> {
        std::mem::take(&mut *self.0.lock().expect("no panic while locked"))
    }
}

impl Default for Database {
    fn default() -> Self {
        Database::new()
    }
}

impl Database {
    /// A copy of a database with only the extension in it.
    pub fn new() -> Database {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let cluster = Cluster::shared();
        let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let create = format!("CREATE DATABASE {name} TEMPLATE pml_template");
        cluster.connect("postgres").batch_execute(&create).expect("a database");
        Database { name, cluster }
    }

    /// In a separate cluster, for tests that stop it.
    pub fn in_cluster(cluster: &'static Cluster) -> Database {
        let name = "own".to_owned();
        cluster.database_with_extension(&name);
        Database { name, cluster }
    }

    /// The folder of its server's socket.
    pub fn socket(&self) -> &Path {
        self.cluster.folder()
    }

    /// How a program connects as a role made with `create_role`.
    pub fn url_of(&self, kind: &str) -> String {
        format!("host={} user={} dbname={}", self.cluster.folder().display(), self.role(kind), self.name)
    }

    /// The same as superuser.
    pub fn admin_url(&self) -> String {
        format!("host={} user=postgres dbname={}", self.cluster.folder().display(), self.name)
    }

    /// A connection as superuser.
    pub fn connect(&self) -> Client {
        self.cluster.connect(&self.name)
    }

    pub fn connect_with_notices(&self) -> (Client, Notices) {
        let notices = Notices::default();
        (self.connect_keeping("postgres", &notices), notices)
    }

    /// The same as a role made with `create_role`.
    pub fn connect_as_with_notices(&self, kind: &str) -> (Client, Notices) {
        let notices = Notices::default();
        (self.connect_as_keeping(kind, &notices), notices)
    }

    /// Another connection of such a role, with the same notices.
    pub fn connect_as_keeping(&self, kind: &str, notices: &Notices) -> Client {
        self.connect_keeping(&self.role(kind), notices)
    }

    fn connect_keeping(&self, user: &str, notices: &Notices) -> Client {
        let kept = notices.clone();
        let mut config = self.cluster.config(user, &self.name);
        config.notice_callback(move |notice| kept.0.lock().expect("no panic while locked").push(notice));
        config.connect(NoTls).expect("a connection")
    }

    /// The name of this test's role of that kind, which must be unique in the cluster.
    pub fn role(&self, kind: &str) -> String {
        format!("{kind}_{}", self.name)
    }

    /// Creates a role that can log in, a member of the given roles.
    pub fn create_role(&self, kind: &str, member_of: &[&str]) -> String {
        let role = self.role(kind);
        let mut client = self.connect();
        client.batch_execute(&format!("CREATE ROLE {role} LOGIN")).expect("a role");
        for group in member_of {
            client.batch_execute(&format!("GRANT {group} TO {role}")).expect("a member");
        }
        role
    }

    /// A connection as a role made with `create_role`.
    pub fn connect_as(&self, kind: &str) -> Client {
        self.cluster.config(&self.role(kind), &self.name).connect(NoTls).expect("a connection")
    }
}

/// The error of a statement that must fail.
pub fn failure<T>(result: Result<T, Error>) -> DbError {
    match result {
        Ok(_) => panic!("the statement went through"),
        Err(error) => {
            error.as_db_error().unwrap_or_else(|| panic!("no error of the server: {error}")).clone()
        }
    }
}

/// Shorthands for queries.
pub trait Ask {
    fn text(&mut self, query: &str, parameters: &[&(dyn ToSql + Sync)]) -> Option<String>;
    fn texts(&mut self, query: &str) -> Vec<String>;
    fn number(&mut self, query: &str) -> i64;
    fn refusal(&mut self, query: &str) -> DbError;
    fn notifications_for(&mut self, patience: Duration) -> Vec<String>;
}

impl Ask for Client {
    fn text(&mut self, query: &str, parameters: &[&(dyn ToSql + Sync)]) -> Option<String> {
        self.query_one(query, parameters).unwrap_or_else(|error| panic!("{query}: {error:?}")).get(0)
    }

    fn texts(&mut self, query: &str) -> Vec<String> {
        let rows = self.query(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}"));
        rows.iter().map(|row| row.get(0)).collect()
    }

    fn number(&mut self, query: &str) -> i64 {
        self.query_one(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}")).get(0)
    }

    fn refusal(&mut self, query: &str) -> DbError {
        failure(self.batch_execute(query))
    }

    fn notifications_for(&mut self, patience: Duration) -> Vec<String> {
        let mut notifications = self.notifications();
        let mut iterator = notifications.timeout_iter(patience);
        let mut payloads = Vec::new();
        while let Ok(Some(notification)) = iterator.next() {
            payloads.push(notification.payload().to_owned());
        }
        payloads
    }
}
