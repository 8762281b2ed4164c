//! `cargo xtask acceptance`: every test that `docs/acceptance.md` names is in the test program that it names, and runs there.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

use crate::cargo::made;
use crate::output::{Result, read_text, root};
use crate::toolchain::run;

const PAGE: &str = "docs/acceptance.md";
/// Numbers of the list: each has a row of the page.
const ITEMS: u32 = 19;

/// A test by its package, its target and its path there.
type Test<'a> = (&'a str, &'a str, &'a str);

/// Fails with the first row that is missing, names no test, or names one that no program has or that is ignored there.
pub fn check() -> Result<()> {
    let page = read_text(&root().join(PAGE))?;
    let named = named(&page)?;
    let programs = programs()?;
    let targets: BTreeSet<_> = named.iter().map(|test| (test.0, test.1)).collect();
    let tests = targets
        .into_iter()
        .map(|target| Ok((target, Program::of(&programs, target.0, target.1)?)))
        .collect::<Result<BTreeMap<_, _>>>()?;
    for (package, target, path) in &named {
        let runs = tests[&(*package, *target)].runs(path);
        runs.map_err(|words| format!("{PAGE}: {package}::{target} {words} {path}"))?;
    }
    println!("{PAGE}: {} tests, all there and none ignored", named.len());
    Ok(())
}

/// The tests that the page's rows name, as `package::target::path` in backticks.
fn named(page: &str) -> Result<BTreeSet<Test<'_>>> {
    let mut all = BTreeSet::new();
    for item in 1..=ITEMS {
        let start = format!("| {item} |");
        let row = page.lines().find(|line| line.starts_with(&start));
        let row = row.ok_or_else(|| format!("{PAGE} has no row {item}"))?;
        let before = all.len();
        for name in row.split('`').skip(1).step_by(2) {
            let (package, rest) = name.split_once("::").unwrap_or((name, ""));
            let (target, path) = rest.split_once("::").unwrap_or((rest, ""));
            if path.is_empty() {
                return Err(format!(
                    "{PAGE}, row {item}: `{name}` is no package::target::test"
                ));
            }
            all.insert((package, target, path));
        }
        if all.len() == before {
            return Err(format!(
                "{PAGE}: row {item} names no test that no other row names"
            ));
        }
    }
    Ok(all)
}

/// Test programs by package and target; the tests of a library are those of target `lib`.
fn programs() -> Result<BTreeMap<(String, String), String>> {
    let made = made(&["test", "--workspace", "--no-run"])?;
    Ok(made.iter().filter_map(program).collect())
}

fn program(message: &Value) -> Option<((String, String), String)> {
    let executable = message["executable"].as_str()?;
    let target = &message["target"];
    let name = match target["kind"][0].as_str()? {
        "test" => target["name"].as_str()?,
        "lib" => "lib",
        _ => return None,
    };
    let package = package(message["package_id"].as_str()?);
    Some(((package.to_owned(), name.to_owned()), executable.to_owned()))
}

/// The name in a package's id: behind `#` up to `@`, or the folder's name where it is the same.
fn package(id: &str) -> &str {
    let (folder, name) = id.rsplit_once('#').unwrap_or((id, ""));
    match name.split_once('@') {
        Some((name, _)) => name,
        None => folder.rsplit('/').next().unwrap_or(folder),
    }
}

/// What a test program says of its tests.
struct Program {
    all: BTreeSet<String>,
    /// Those that run only when they are asked for.
    ignored: BTreeSet<String>,
}

impl Program {
    fn of(
        programs: &BTreeMap<(String, String), String>,
        package: &str,
        target: &str,
    ) -> Result<Self> {
        let program = programs.get(&(package.to_owned(), target.to_owned()));
        let program =
            program.ok_or_else(|| format!("{PAGE}: {package} has no test program {target}"))?;
        Ok(Self {
            all: list(program, &[])?,
            ignored: list(program, &["--ignored"])?,
        })
    }

    /// Whether an ordinary run of the program has this test; what is wrong with it otherwise.
    fn runs(&self, path: &str) -> std::result::Result<(), &'static str> {
        match (self.all.contains(path), self.ignored.contains(path)) {
            (true, false) => Ok(()),
            (true, true) => Err("ignores"),
            (false, _) => Err("has no test"),
        }
    }
}

/// The tests that a program lists.
fn list(program: &str, which: &[&str]) -> Result<BTreeSet<String>> {
    let arguments = ["--list", "--format", "terse"];
    let output = run(Command::new(program).args(arguments).args(which))?;
    let tests = String::from_utf8_lossy(&output.stdout);
    let names = tests.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::output::Scratch;

    /// A page whose row `item` is replaced.
    fn page(item: u32, row: &str) -> String {
        let rows = (1..=ITEMS).map(|other| match other == item {
            true => format!("{row}\n"),
            false => format!("| {other} | what | `package::target::test_{other}` |\n"),
        });
        rows.collect()
    }

    #[test]
    fn every_row_names_tests_of_its_own() {
        let whole = page(0, "");
        assert_eq!(named(&whole).unwrap().len(), 19);
        assert!(
            named(&whole)
                .unwrap()
                .contains(&("package", "target", "test_7"))
        );
        for (row, words) in [
            ("", "has no row 7"),
            ("| 7 | what | nothing |", "row 7 names no test"),
            (
                "| 7 | what | `package::target::test_6` |",
                "row 7 names no test",
            ),
            (
                "| 7 | what | `package::target` |",
                "row 7: `package::target` is no",
            ),
        ] {
            let error = named(&page(7, row)).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn packages_are_known_by_name_wherever_they_lie() {
        assert_eq!(package("path+file:///a/core#slabfence@0.1.0"), "slabfence");
        assert_eq!(package("path+file:///a/xtask#0.1.0"), "xtask");
    }

    #[test]
    fn a_test_that_is_not_in_the_program_is_missing() {
        let own = std::env::current_exe().unwrap().display().to_string();
        let programs = [(("xtask".to_owned(), "bin".to_owned()), own)].into();
        let tests = Program::of(&programs, "xtask", "bin").unwrap();
        let here = "acceptance::tests::a_test_that_is_not_in_the_program_is_missing";
        assert_eq!(tests.runs(here), Ok(()));
        assert_eq!(tests.runs("acceptance::tests::another"), Err("has no test"));
        assert!(Program::of(&programs, "xtask", "lib").is_err());
    }

    #[test]
    fn a_test_that_its_program_ignores_is_refused() {
        // As libtest: ignored tests are among all, and alone where they are asked for.
        let folder = Scratch::new("acceptance").unwrap();
        let script = "#!/bin/sh\n[ \"$4\" = --ignored ] || echo 'runs: test'\necho 'slow: test'\n";
        folder.put("program", script.as_bytes()).unwrap();
        let program = folder.path().join("program");
        let executable = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&program, executable).unwrap();
        let programs = [(
            ("p".to_owned(), "t".to_owned()),
            program.display().to_string(),
        )]
        .into();
        let tests = Program::of(&programs, "p", "t").unwrap();
        assert_eq!(tests.runs("runs"), Ok(()));
        assert_eq!(tests.runs("slow"), Err("ignores"));
    }
}
