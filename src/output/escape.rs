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

/// The text line by line, each made visible. This is for the few texts that have several lines, such as a mistake in
/// a policy with the line that holds it.
pub fn visible_lines(text: &str) -> Vec<String> {
    text.split('\n').map(visible).collect()
}

/// A line for a log that the Actions runner reads. The runner takes `::` at a line's start, after white space, and `##[`
/// anywhere in it for a command; both are broken here.
pub fn log_line(line: &str) -> String {
    let line = no_old_command(line);
    let start = line.len() - line.trim_start().len();
    match line.split_at_checked(start) {
        Some((space, rest)) if rest.starts_with("::") => format!("{space}\\{rest}"),
        _ => line,
    }
}

/// The text without `##[`, the older form of a command.
fn no_old_command(text: &str) -> String {
    text.replace("##[", "## [")
}

/// The message of a workflow command. It is one line.
pub fn command_data(text: &str) -> String {
    no_old_command(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// The value of a workflow command's property. It is one line.
pub fn command_property(text: &str) -> String {
    command_data(text).replace(':', "%3A").replace(',', "%2C")
}

/// A plain text for Markdown: shown as it is, in one line, starting nothing: no markup, no HTML, no mention and no link.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            // A backslash does not keep GitHub from linking a mention, which it finds in the finished page.
            '@' => out.push_str("@\u{200b}"),
            c if c.is_ascii_punctuation() && !matches!(c, ',' | ';' | '\'' | '"' | '/' | '?' | '%') => {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}

/// A link in Markdown; the text alone where the address is none that a page should lead to.
pub fn markdown_link(text: &str, url: &str) -> String {
    if is_plain_url(url) { format!("[{}](<{url}>)", markdown(text)) } else { markdown(text) }
}

/// Whether an address leads to a web page and holds nothing that could end it early.
pub fn is_plain_url(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(|rest| {
        !rest.is_empty()
            && url.len() <= 2000
            && rest.chars().all(|c| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'*+,;=%".contains(c))
    })
}

/// Lines as a block of code in Markdown, fenced so that nothing in them ends it.
pub fn markdown_block(lines: &[String]) -> String {
    let runs = |line: &String| line.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(lines.iter().map(runs).max().unwrap_or(0).max(2).saturating_add(1));
    format!("{fence}text\n{}\n{fence}\n", lines.join("\n"))
}
