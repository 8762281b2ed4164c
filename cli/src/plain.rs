//! Text of others on a terminal: names in files may hold characters that move the cursor, colour what follows or turn its
//! direction.

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

fn is_plain(letter: char) -> bool {
    matches!(letter, '\'' | '"' | '\\') || letter.escape_debug().len() == 1
}

#[cfg(test)]
mod tests {
    use super::{lines, one_line};

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
}
