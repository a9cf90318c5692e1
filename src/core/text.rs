//! Requests in text: where a person really speaks to the agent, and where the words are only quoted.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::key::Digest;

/// The longest text that is parsed, in bytes: GitHub's limit of a body is 65,536 characters of at most 4 bytes.
pub const MAX_TEXT_BYTES: usize = 65_536 * 4;

/// One request: the plain text of the paragraph, list item or heading that holds the phrase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The text with white space folded.
    pub text: String,
}

/// The requests in a Markdown text: each block of plain text in which `phrase` stands between white space or an end
/// and white space, an end or one of `.,!?;:`, ignoring case. What stands in a quote, in code or in HTML is no request.
pub fn requests(markdown: &str, phrase: &str) -> Vec<Request> {
    if phrase.trim().is_empty() {
        return Vec::new();
    }
    plain_blocks(bounded(markdown))
        .into_iter()
        .filter(|block| holds_phrase(block, phrase))
        .map(|block| Request { text: fold_space(&block) })
        .collect()
}

/// The digest of what the requests ask, ignoring white space.
pub fn digest_of(requests: &[Request]) -> Digest {
    let joined: Vec<&str> = requests.iter().map(|r| r.text.as_str()).collect();
    Digest::of(&joined.join("\n"))
}

/// The text up to the limit, cut at a character boundary.
fn bounded(text: &str) -> &str {
    let mut end = text.len().min(MAX_TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

/// The blocks of plain text: paragraphs, headings, items, table cells; without quotes, code and HTML. Code inside a
/// block leaves a character that is part of no phrase, so that words on both sides of it do not join.
fn plain_blocks(markdown: &str) -> Vec<String> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut blocks = Vec::new();
    let mut block = String::new();
    let mut quotes = 0_u32;
    let mut code_blocks = 0_u32;
    let mut flush = |block: &mut String| {
        if !block.trim().is_empty() {
            blocks.push(std::mem::take(block));
        }
        block.clear();
    };
    for event in Parser::new_ext(markdown, options) {
        match event {
            Event::Start(Tag::BlockQuote(_)) => {
                flush(&mut block);
                quotes += 1;
            }
            Event::End(TagEnd::BlockQuote(_)) => {
                block.clear();
                quotes = quotes.saturating_sub(1);
            }
            Event::Start(Tag::CodeBlock(_)) => {
                flush(&mut block);
                code_blocks += 1;
            }
            Event::End(TagEnd::CodeBlock) => code_blocks = code_blocks.saturating_sub(1),
            Event::Start(Tag::Paragraph | Tag::Heading { .. } | Tag::Item | Tag::TableCell | Tag::HtmlBlock)
            | Event::End(
                TagEnd::Paragraph | TagEnd::Heading(_) | TagEnd::Item | TagEnd::TableCell | TagEnd::HtmlBlock,
            ) => {
                if quotes > 0 {
                    block.clear();
                } else {
                    flush(&mut block);
                }
            }
            Event::Text(text) if quotes == 0 && code_blocks == 0 => block.push_str(&text),
            Event::SoftBreak | Event::HardBreak => block.push('\n'),
            Event::Code(_) => block.push('\u{fffc}'),
            _ => {}
        }
    }
    flush(&mut block);
    blocks
}

/// Whether the phrase stands in a text, set off on both sides, ignoring case.
fn holds_phrase(text: &str, phrase: &str) -> bool {
    let text = text.to_lowercase();
    let phrase = phrase.trim().to_lowercase();
    text.match_indices(&phrase).any(|(start, found)| {
        let before = text.get(..start).and_then(|t| t.chars().next_back());
        let after = text.get(start + found.len()..).and_then(|t| t.chars().next());
        before.is_none_or(char::is_whitespace)
            && after.is_none_or(|c| c.is_whitespace() || matches!(c, '.' | ',' | '!' | '?' | ';' | ':'))
    })
}

fn fold_space(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
