//! What the generated names are for, in our words.

use std::collections::BTreeMap;

use crate::output::Result;

/// Texts by `name` or `owner::member`, each to be taken once.
pub struct Docs(BTreeMap<String, String>);

impl Docs {
    /// Reads the checked-in texts.
    pub fn read() -> Result<Self> {
        Self::parse(include_str!("docs.txt"))
    }

    fn parse(text: &str) -> Result<Self> {
        let mut docs = BTreeMap::new();
        let mut last = None;
        for line in text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            if let (Some(more), Some(name)) = (line.strip_prefix("    "), &last) {
                let doc: &mut String = docs.entry(String::clone(name)).or_default();
                doc.push('\n');
                doc.push_str(more);
            } else {
                let (name, doc) = line
                    .split_once(": ")
                    .ok_or_else(|| format!("docs.txt: `{line}` is not `name: text`"))?;
                if docs.insert(name.to_owned(), doc.to_owned()).is_some() {
                    return Err(format!("docs.txt: {name} is there twice"));
                }
                last = Some(name.to_owned());
            }
        }
        Ok(Self(docs))
    }

    /// The text about a type, which must be there.
    pub fn of(&mut self, name: &str) -> Result<String> {
        self.0
            .remove(name)
            .ok_or_else(|| format!("say in xtask/src/bindings/docs.txt what {name} is for"))
    }

    /// The text about a field or a value, if there is one.
    pub fn of_member(&mut self, owner: &str, member: &str) -> Option<String> {
        self.0.remove(&format!("{owner}::{member}"))
    }

    /// Fails if a text was about nothing.
    pub fn finish(self) -> Result<()> {
        match self.0.into_keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("docs.txt: {name} is not generated (any longer)")),
        }
    }
}

/// A text as doc comments.
pub fn comment(indent: &str, text: &str) -> String {
    text.split('\n')
        .map(|line| format!("{indent}/// {line}").trim_end().to_owned() + "\n")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Docs, comment};

    #[test]
    fn a_text_may_go_on_and_is_taken_once() {
        let mut docs = Docs::parse("# heading\nA: one\n    two\n\nA::b: member\n").unwrap();
        assert_eq!(docs.of("A").unwrap(), "one\ntwo");
        assert!(docs.of("A").unwrap_err().contains("what A is for"));
        assert_eq!(docs.of_member("A", "b").as_deref(), Some("member"));
        assert_eq!(docs.of_member("A", "c"), None);
        docs.finish().unwrap();
    }

    #[test]
    fn a_text_about_nothing_is_an_error() {
        let said = Docs::parse("CUgone: x\n").unwrap().finish().unwrap_err();
        assert!(said.contains("CUgone"), "{said}");
        assert!(Docs::parse("A: x\nA: y\n").is_err());
        assert!(Docs::parse("no colon\n").is_err());
    }

    #[test]
    fn an_empty_line_of_a_text_has_no_blank_at_its_end() {
        assert_eq!(comment("  ", "a\n\nb"), "  /// a\n  ///\n  /// b\n");
    }
}
