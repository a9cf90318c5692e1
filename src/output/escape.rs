//! Foreign text made fit for the place where it is shown: one function a place, and nowhere else.

/// Whether a character is not seen where it stands, or changes how its neighbours are seen: controls, line and
/// paragraph separators, bidirectional controls, zero-width characters and tags.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0e}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text with every hidden character written out, such as `\n` or `\u{202e}`. The result is one line.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// At most `limit` characters of the text; an ellipsis takes the place of what was left out.
pub fn at_most(text: &str, limit: usize) -> String {
    if text.char_indices().nth(limit).is_none() {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(limit.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// How the tokens begin that are known by their first characters.
const TOKEN_PREFIXES: [&str; 10] =
    ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "sk-", "xoxb-", "AKIA", "eyJ"];

/// How long a word of letters and digits may be before it is taken for a secret.
const LONGEST_WORD: usize = 32;

/// The text with whatever looks like a token replaced by as many asterisks, so that places in it stay where they are.
pub fn masked(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut word = String::new();
    for c in text.chars().map(Some).chain([None]) {
        match c {
            Some(c) if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '/' | '=' | '.') => word.push(c),
            c => {
                if looks_secret(&word) {
                    out.extend(word.chars().map(|_| '*'));
                } else {
                    out.push_str(&word);
                }
                word.clear();
                out.extend(c);
            }
        }
    }
    out
}

fn looks_secret(word: &str) -> bool {
    let mixed = word.contains(|c: char| c.is_ascii_digit()) && word.contains(|c: char| c.is_ascii_alphabetic());
    TOKEN_PREFIXES.iter().any(|prefix| word.starts_with(prefix) && word.len() >= prefix.len() + 12)
        || (mixed && word.len() >= LONGEST_WORD && !word.contains('/'))
}
