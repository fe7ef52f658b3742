//! A copy of the repository with the programs that were built with the tests, in a folder with an odd name.

use std::{
    ffi::OsString,
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use pml_tests::{mcp::pml, peers::free_port, program};
use tempfile::TempDir;

/// What the scripts read, besides the built programs.
const FILES: [&str; 5] = ["Makefile", "Cargo.toml", "pml_ext/pml.control.in", "scripts", "sql"];

pub(crate) struct Checkout {
    /// What is removed at the end; the repository is below it.
    _folder: TempDir,
    pub(crate) root: PathBuf,
    home: PathBuf,
    /// As whom the scripts are run, if not as ourselves.
    user: Option<&'static str>,
    pub(crate) port: u16,
}

impl Checkout {
    pub(crate) fn new() -> Checkout {
        Checkout::of(None)
    }

    /// Of a user without privileges, if there is another one to be.
    pub(crate) fn of_nobody() -> Checkout {
        Checkout::of(is_root().then_some("nobody"))
    }

    fn of(user: Option<&'static str>) -> Checkout {
        let folder = tempfile::Builder::new().prefix("pml-make-").tempdir().expect("a temporary folder");
        let root = folder.path().join(r#"it's "the" $HOME of pml"#);
        let (built, home) = (root.join("target/debug"), folder.path().join("home"));
        fs::create_dir_all(&built).expect("a folder");
        fs::create_dir(&home).expect("a folder");
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for file in FILES {
            let target = root.join(file);
            fs::create_dir_all(target.parent().expect("a folder")).expect("a folder");
            run(Command::new("cp").arg("-r").arg(repository.join(file)).arg(&target));
        }
        let programs = PathBuf::from(pml().get_program());
        for name in ["pml", "pml-worker"] {
            same_file(&programs.with_file_name(name), &built.join(name));
        }
        let library = run(Command::new(program("pg_config")).arg("--pkglibdir"));
        same_file(&Path::new(library.trim()).join("pml.so"), &built.join("libpml.so"));
        run(Command::new("chmod").arg("755").arg(folder.path()));
        if let Some(user) = user {
            // Only the folders: the programs may be links to those that were built.
            run(Command::new("chown").arg(user).arg(&root).arg(&home));
        }
        Checkout { _folder: folder, root, home, user, port: free_port() }
    }

    /// A command of this checkout's user, in its folder, without the settings of whoever runs the tests.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut home = OsString::from("HOME=");
        home.push(&self.home);
        let mut command = match self.user {
            Some(user) => {
                let mut command = Command::new("runuser");
                // It gives the user's home, which may not exist.
                command.args(["-u", user, "--", "env"]).arg(home).args(words);
                command
            }
            None => {
                let mut command = Command::new(words[0]);
                command.args(&words[1..]);
                command
            }
        };
        for (name, _) in
            std::env::vars().filter(|(name, _)| name.starts_with("PML_") || name.starts_with("XDG_"))
        {
            command.env_remove(name);
        }
        command.env("HOME", &self.home).env("PML_PROFILE", "debug").current_dir(&self.root);
        command
    }

    /// `make`, but with what is built already.
    pub(crate) fn make(&self, target: &str) -> Command {
        let port = format!("PML_PORT={}", self.port);
        let mut command = self.command(&["make", "-o", "build", target, &port]);
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn up(&self) -> Output {
        self.make("up").output().expect("make starts")
    }

    /// In a process group of its own, to be killed with all that it has started.
    pub(crate) fn start_up(&self) -> Child {
        self.make("up")
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("make starts")
    }

    /// Where the scripts keep their files.
    pub(crate) fn home_of_scripts(&self) -> PathBuf {
        let print = ". scripts/env && printf %s \"$PML_HOME\"";
        PathBuf::from(run(&mut self.command(&["bash", "-c", print])))
    }

    /// The command lines of the processes that this checkout has started and that still run.
    pub(crate) fn processes(&self) -> Vec<String> {
        let (home, root) = (self.home_of_scripts(), self.root.join("target"));
        let is_ours =
            |line: &String| [&home, &root].iter().any(|path| line.contains(&*path.to_string_lossy()));
        let entries = fs::read_dir("/proc").expect("/proc").flatten();
        let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).filter(is_ours).collect()
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        let _ = self.make("clean").output();
    }
}

/// What a command prints, if it succeeds.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    succeeded(&output);
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[track_caller]
pub(crate) fn succeeded(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn same_file(from: &Path, to: &Path) {
    // Across file systems there are no links.
    if fs::hard_link(from, to).is_err() {
        fs::copy(from, to).expect("a copy");
    }
}

fn is_root() -> bool {
    run(Command::new("id").arg("-u")).trim() == "0"
}
