//! Text of others on a terminal: names in files may hold characters that move the cursor, colour what follows or turn its
//! direction.

use std::path::Path;

/// The text with what is no printable character escaped, so that it stays on one line.
pub fn one_line(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_plain(letter) {
            true => plain.push(letter),
            false => plain.extend(letter.escape_default()),
        }
    }
    plain
}

/// The same of each line of a text.
pub fn lines(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(one_line).collect();
    lines.join("\n")
}

/// A path as a shell's word: what a line says that is to be run again.
pub fn shell(path: &Path) -> String {
    let text = path.to_string_lossy();
    // Else it would be an option.
    let text = match text.starts_with('-') {
        true => format!("./{text}"),
        false => text.into_owned(),
    };
    let harmless = |letter: char| letter.is_alphanumeric() || "_./-+=:,@%".contains(letter);
    if text.chars().all(harmless) {
        return text;
    }
    if text.chars().all(is_plain) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let letter = |letter: char| match letter {
        '\'' | '\\' => format!("\\{letter}"),
        _ if is_plain(letter) => letter.to_string(),
        _ => format!("\\U{:08x}", u32::from(letter)),
    };
    format!("$'{}'", text.chars().map(letter).collect::<String>())
}

fn is_plain(letter: char) -> bool {
    matches!(letter, '\'' | '"' | '\\') || letter.escape_debug().len() == 1
}

#[cfg(test)]
mod tests {
    use super::{lines, one_line, shell};

    #[test]
    fn what_would_do_something_to_a_terminal_is_escaped_and_all_else_stays() {
        let table = [
            ("flags of rank 0", "flags of rank 0"),
            ("Fähnchen `x` \\ \"y\"", "Fähnchen `x` \\ \"y\""),
            ("\u{1b}[31mred\u{7}", "\\u{1b}[31mred\\u{7}"),
            ("two\nlines\r\tand", "two\\nlines\\r\\tand"),
            ("\u{9b}2J\u{7f}", "\\u{9b}2J\\u{7f}"),
            ("\u{202e}gnp", "\\u{202e}gnp"),
            ("no\u{200b}thing\u{feff}", "no\\u{200b}thing\\u{feff}"),
            ("\u{e0001}\u{200d}\u{ad}", "\\u{e0001}\\u{200d}\\u{ad}"),
        ];
        for (text, plain) in table {
            assert_eq!(one_line(text), plain);
        }
        assert_eq!(lines("a\u{1b}\n\nb\r\n"), "a\\u{1b}\n\nb\\r\n");
    }

    #[test]
    fn a_path_is_one_word_to_a_shell_and_no_option() {
        let table = [
            ("a/b-1.toml", "a/b-1.toml"),
            ("sp ace/x.toml", "'sp ace/x.toml'"),
            ("q'u$(x).toml", r"'q'\''u$(x).toml'"),
            ("-b.toml", "./-b.toml"),
            ("two\nlines's", r"$'two\U0000000alines\'s'"),
        ];
        for (path, word) in table {
            assert_eq!(shell(path.as_ref()), word);
        }
        for (path, word) in table {
            let echo = format!("printf %s {word}");
            let run = std::process::Command::new("bash")
                .args(["-c", &echo])
                .output();
            let said = String::from_utf8(run.expect("a shell").stdout).expect("text");
            let path = path
                .strip_prefix('-')
                .map_or(path.to_owned(), |rest| format!("./-{rest}"));
            assert_eq!(said, path);
        }
    }
}
