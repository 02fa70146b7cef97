//! Checks that the project's pages are right: each path they name exists, each command they show is accepted by the
//! program.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the pages at the root and those below `docs`.
fn pages() -> Outcome<Vec<PathBuf>> {
    let mut out: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].iter().map(|it| root().join(it)).collect();
    for folder in ["docs", "docs/dialects"] {
        for entry in fs::read_dir(root().join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|it| it == "md") {
                out.push(path);
            }
        }
    }
    Ok(out)
}

/// Returns the paths that a page names: in backticks from the root of the project, in links from the page's
/// own folder.
fn named(page: &Path, text: &str) -> Vec<(String, PathBuf)> {
    let is_plain = |it: &str| !it.is_empty() && !it.contains(['*', '<', '{', '(', ' ', '…', '$', '\n']);
    let mut out = Vec::new();
    for part in text.split('`').skip(1).step_by(2).filter(|it| is_plain(it)) {
        if ["crates/", "docs/", "tests/", ".ci/"].iter().any(|it| part.starts_with(it)) {
            out.push((part.to_owned(), root().join(part)));
        }
    }
    let folder = page.parent().unwrap_or(Path::new("."));
    for part in text.split("](").skip(1) {
        let target = part.split([')', '#']).next().unwrap_or_default();
        if is_plain(target) && !target.contains("://") {
            out.push((target.to_owned(), folder.join(target)));
        }
    }
    out
}

#[test]
fn every_path_that_is_named_exists() -> Outcome {
    let mut n_named = 0;
    let mut missing = Vec::new();
    for page in pages()? {
        for (name, path) in named(&page, &fs::read_to_string(&page)?) {
            n_named += 1;
            if !path.exists() {
                missing.push(format!("{}: {name}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(100 < n_named, "{n_named} paths found: a changed form would pass silently");
    Ok(())
}

/// Collects the sources below a folder, each by its path from the root with `/` before it.
fn sources(folder: &Path, out: &mut Vec<String>) -> Outcome {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if path.file_name().is_none_or(|it| it != "target" && it != "node_modules") {
                sources(&path, out)?;
            }
        } else if path.extension().is_some_and(|it| it == "rs") {
            out.push(format!("/{}", path.strip_prefix(root())?.display()));
        }
    }
    Ok(())
}

/// ARCHITECTURE.md names sources of the crate in question by the end of their paths: `files/add.rs`.
#[test]
fn every_source_that_the_architecture_names_exists() -> Outcome {
    let mut there = Vec::new();
    sources(&root().join("crates"), &mut there)?;
    let text = fs::read_to_string(root().join("ARCHITECTURE.md"))?;
    let named: Vec<&str> = text.split('`').skip(1).step_by(2).filter(|it| it.ends_with(".rs")).collect();
    assert!(40 < named.len(), "{named:?}");
    let is_missing = |it: &&&str| !there.iter().any(|path| path.ends_with(&format!("/{it}")));
    let missing: Vec<&&str> = named.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "{missing:#?}");
    Ok(())
}

/// Returns the commands in the indented blocks of a page, without the explanations behind them.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut out = Vec::new();
    for line in text.lines().filter_map(|it| it.strip_prefix("    ")) {
        let line = line.trim_start_matches("$ ");
        let rest = ["pinakes ", "cargo run --release -- "].iter().find_map(|it| line.strip_prefix(it));
        let Some(rest) = rest else { continue };
        let said = rest
            .split("  ")
            .next()
            .unwrap_or_default()
            .split([';', '#', '|', '>'])
            .next()
            .unwrap_or_default();
        // The shell's substitution counts as one word.
        let mut plain = said.to_owned();
        while let Some((before, after)) = plain.split_once("$(") {
            let after = after.split_once(')').map_or("", |it| it.1);
            plain = format!("{before}X{after}");
        }
        out.push(plain.split_whitespace().map(str::to_owned).collect());
    }
    out
}

#[test]
fn every_command_of_readme_and_guides_is_one() -> Outcome {
    let mut found = Vec::new();
    for page in pages()? {
        let name = page.file_name().and_then(|it| it.to_str()).unwrap_or_default();
        if ["README.md", "install.md", "citations.md"].contains(&name) || name.ends_with("-migrate.md") {
            found.extend(commands(&fs::read_to_string(&page)?));
        }
    }
    assert!(15 < found.len(), "{found:?}");
    for arguments in found {
        // The help is shown once the arguments before it are understood.
        let said = Command::new(env!("CARGO_BIN_EXE_pinakes")).args(&arguments).arg("--help").output()?;
        assert!(said.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&said.stderr));
    }
    Ok(())
}

#[test]
fn the_readme_links_every_page() -> Outcome {
    let readme = fs::read_to_string(root().join("README.md"))?;
    for page in pages()? {
        let name = page.strip_prefix(root())?.display().to_string();
        assert!(
            name == "README.md" || readme.contains(&format!("]({name})")),
            "README.md does not link {name}"
        );
    }
    Ok(())
}
