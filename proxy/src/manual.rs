//! `pml manual`: the man pages and shell completions, written when packages are built.
//!
//! A command of the program itself, because a second program would have to be linked with all of its libraries.

use std::{fs, io, path::Path};

use clap_complete::Shell;

use crate::cli;

const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// Writes a man page for each command and a completion script for each shell into `folder`.
pub fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let line = visible(&cli::command_line());
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut line.clone(), "pml", folder)?;
    }
    clap_mangen::generate_to(line, folder)
}

/// The command without what `--help` doesn't show either; completions would offer it.
fn visible(command: &clap::Command) -> clap::Command {
    let mut shown = clap::Command::new(command.get_name().to_owned())
        .args(command.get_arguments().filter(|arg| !arg.is_hide_set()))
        .subcommands(command.get_subcommands().filter(|inner| !inner.is_hide_set()).map(visible))
        .subcommand_required(command.is_subcommand_required_set());
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(after) = command.get_after_help() {
        shown = shown.after_help(after.clone());
    }
    if let Some(version) = command.get_version() {
        shown = shown.version(version.to_owned());
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs};

    fn written() -> BTreeMap<String, String> {
        let folder = tempfile::tempdir().unwrap();
        super::write(folder.path()).unwrap();
        fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| {
                (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
            })
            .collect()
    }

    #[test]
    fn every_command_has_a_page_and_every_shell_its_completions() {
        let files = written();
        let names: Vec<&str> = files.keys().map(String::as_str).collect();
        for wanted in [
            "_pml",
            "pml.1",
            "pml.bash",
            "pml.fish",
            "pml-clients.1",
            "pml-doctor.1",
            "pml-serve.1",
            "pml-stdio.1",
            "pml-token.1",
            "pml-token-create.1",
            "pml-token-list.1",
            "pml-token-revoke.1",
        ] {
            assert!(names.contains(&wanted), "{wanted} is missing: {names:?}");
        }
        assert!(files["pml-serve.1"].contains("PML_DATABASE_URL"), "{}", files["pml-serve.1"]);
    }

    #[test]
    fn what_the_help_hides_is_in_none_of_them() {
        for (name, text) in written() {
            assert!(!name.contains("manual"), "{name}");
            let is_completion = !name.ends_with(".1");
            assert!(!is_completion || !text.contains("manual"), "{name} offers the hidden command");
        }
        // `token list` needs no address to listen on; its help doesn't show one.
        let page = &written()["pml-token-list.1"];
        assert!(page.contains("database\\-url") && !page.contains("\\-bind"), "{page}");
    }
}
